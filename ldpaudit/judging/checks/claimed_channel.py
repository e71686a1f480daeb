"""Are the released labels distributed as the claimed mechanism makes them?"""

from ldpaudit.judging.checks.interface import Answer, Case, Draft

CONSISTENCY = ("mechanism.channel_consistency", "mechanism.marginal_consistency")


def draft(case: Case) -> Draft | None:
    """Return the check, None where it is not asked for or the claim says nothing of frequencies."""
    section, evidence = case.policy.checks.claimed_channel, case.evidence
    name = next((i for i in CONSISTENCY if i in evidence.estimates), None)
    if section is None or (case.claim.channel is None and name is None):
        return None

    def test(alpha: float) -> Answer:
        if name is None:
            return Answer("inconclusive", None, "no audit compared the counts with the claim")
        p_value = evidence.estimates[name].value
        if p_value <= alpha:
            return Answer("fail", p_value, "the released labels do not follow the claimed channel")
        return Answer("pass", p_value, "the released labels agree with the claimed channel")

    question = "Are the released labels distributed as the claimed mechanism makes them (p-value)?"
    return Draft("claimed-channel", section.level, question, None, (name,) if name else (), test)
