"""Were the labels of classes with few people released as claimed?"""

from ldpaudit.audits.assumptions.stated import RARE_CLASSES
from ldpaudit.estimators.epsilon.rare import HELD_UP
from ldpaudit.judging.checks.interface import Answer, Case, Draft


def draft(case: Case) -> Draft | None:
    """Return the check, None where it is not asked for or no rare class could show anything."""
    section, test = case.policy.checks.rare_classes, case.evidence.estimates.get(RARE_CLASSES)
    if section is None or test is None:
        return None

    def answer(alpha: float) -> Answer:
        if test.value > max(alpha, HELD_UP):
            return Answer("pass", test.value, "the labels of rare classes agree with the claim")
        if test.value <= alpha:
            return Answer("fail", test.value, test.title)
        return Answer("inconclusive", test.value, f"{test.title}: too few people to be sure")

    question = "Were the labels of rare classes released as claimed (p-value)?"
    return Draft("rare-classes", section.level, question, None, (RARE_CLASSES,), answer)
