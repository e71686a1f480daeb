"""Checks of the noise: is it as claimed, and each row's own?"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from ldpaudit.error_budget import FEATURES
from ldpaudit.estimators.epsilon.consistency import ACCUSED, HELD_UP
from ldpaudit.judging.checks.claimed_epsilon import CONSISTENCY
from ldpaudit.judging.checks.interface import Answer, Case, Draft, drafted
from ldpaudit.mechanisms.capabilities import NoisyFeatures
from ldpaudit.result import Verdict
from ldpaudit.result.numbers import number
from ldpaudit.result.stated import (
    COMPOSED_EPSILON,
    EXCESS,
    FEATURE_CURVE,
    FEATURE_DRAWN,
    FEATURE_NOISE,
    FEATURE_UNCHANGED,
    FEATURES_KEPT,
    OWN_ROWS,
    RARE_CLASSES,
    SEEDS,
    SUMS_CONSISTENCY,
)

_FEATURES_EXACT = "mechanism.feature_epsilon"


# The error probability of each check that has one of its own: of seeds, and of kept features. What
# is wrong leaves a p-value far below, so the other checks need not share their level with it.
OWN_ERROR: Final = 1e-9
# Up to this p-value what takes no share of the error is to be looked at, and refutes nothing.
HARDLY_CHANCE: Final = 1e-3


def undetected_excess(case: Case, section: Any) -> Draft | None:
    """Return the check of how large an excess over the claimed ε the audit could have missed."""
    epsilon = case.claim.epsilon
    if epsilon is None or math.isinf(epsilon) or case.by_strata:
        return None
    allowed = section.max.at(epsilon)

    def test(alpha: float) -> Answer:
        missed = case.evidence.undetected_excess(alpha)
        if missed is None:
            return Answer("fail", None, "how much this audit could have missed is not known")
        if math.isinf(missed) and missed > allowed:
            return Answer("fail", missed, "this audit would have found no excess, however large")
        if missed <= allowed:
            words = f"an excess of {number(missed, 'up')} or more would have been found"
            return Answer("pass", missed, words)
        words = f"an excess of up to {number(missed, 'up')} over the claimed ε may be there"
        return Answer("fail", missed, f"{words} and not have been noticed")

    ids = (EXCESS,) if EXCESS in case.evidence.estimates else ()
    return drafted(test, ids, None if math.isinf(allowed) else allowed)


def p_value_of(words: Mapping[str, tuple[str, str]]) -> Callable[[Case, Any], Draft | None]:
    """Return a check by the first of some p-values: its words where it is small, and where not."""

    def look(case: Case, _: Any) -> Draft | None:
        name = next((name for name in words if name in case.evidence.estimates), None)
        if name is None:
            return None
        p_value, (failed, passed) = case.evidence.estimates[name].value, words[name]

        def test(alpha: float) -> Answer:
            small = p_value <= alpha
            return Answer("fail" if small else "pass", p_value, failed if small else passed)

        return drafted(test, (name,))

    return look


_follow = p_value_of(
    dict.fromkeys(
        CONSISTENCY,
        (
            "the released labels do not follow the claimed channel",
            "the released labels agree with the claimed channel",
        ),
    )
    | {
        SUMS_CONSISTENCY: (
            "the noise of the released sums was not drawn as is claimed",
            "the noise of the released sums agrees with the claim",
        )
    }
)


def claimed_channel(case: Case, section: Any) -> Draft | None:
    """Return the check of whether released labels follow the claimed channel."""
    found = _follow(case, section)
    if found is not None or case.claim.channel is None:
        return found
    return drafted(Answer("inconclusive", None, "no audit compared the counts with the claim"))


def rare_classes(case: Case, _: Any) -> Draft | None:
    """Return the check of whether rare labels were released as claimed."""
    found = case.evidence.estimates.get(RARE_CLASSES)
    if found is None:
        return None

    def test(alpha: float) -> Answer:
        if found.value > max(alpha, HELD_UP):
            return Answer("pass", found.value, "the labels of rare classes agree with the claim")
        if found.kind == "estimated":
            why = "rows may share noise, or have been repeated or left out after it"
            return Answer("inconclusive", found.value, f"{found.title}: {why}")
        if found.value <= min(alpha, ACCUSED):
            return Answer("fail", found.value, found.title)
        return Answer("inconclusive", found.value, f"{found.title}: too few people to be sure")

    return drafted(test, (RARE_CLASSES,))


def feature_noise(case: Case, _: Any) -> Draft | None:
    """Return the check of whether released features have the noise that is claimed."""
    claim, evidence = case.claim.offers(NoisyFeatures), case.evidence
    if claim is None:
        return _features_kept(case)
    limit = claim.feature_epsilon
    if not claim.claim_holds():
        exact = evidence.at(_FEATURES_EXACT, 0.0)
        reason = "the declared σ is too small for the ε and δ that are claimed for the features"
        ids = (_FEATURES_EXACT,) if exact is not None else ()
        return drafted(Answer("fail", exact, reason), ids, limit, no_test=True)
    amount = evidence.estimates.get(FEATURE_NOISE)
    if amount is None:
        return None

    same = evidence.estimates.get(FEATURE_UNCHANGED)
    drawn = evidence.estimates.get(FEATURE_DRAWN)

    def test(alpha: float) -> Answer:
        bound = evidence.at(FEATURE_CURVE, FEATURES.of(alpha, "curve"))
        if same is not None and same.value <= FEATURES.of(alpha, "unchanged"):
            # No bound of ε says it, so none stands beside it.
            return Answer(
                "fail",
                None,
                "more feature values are exactly the true ones than noise could leave so: they are "
                "released in the clear",
            )
        if bound is not None and bound > limit:
            return Answer(
                "fail",
                bound,
                "if their noise is Gaussian, the features have a larger ε than is claimed",
                "lower",
            )
        if drawn is not None and drawn.value <= alpha:
            return Answer(
                "inconclusive",
                bound,
                "the noise on the features is not drawn as is declared, Gaussian and for each row "
                "by itself: it has few values, is shared by rows, has another shape, or goes with "
                "the label",
                None if bound is None else "lower",
            )
        if amount.value <= alpha:
            return Answer(
                "inconclusive",
                bound,
                "the released features are nearer to the true ones than the declared noise leaves "
                "them: there is less of it, or the features were rounded or clipped after it",
                None if bound is None else "lower",
            )
        reason = "the features have as much noise as is declared"
        return Answer("pass", bound, reason, None if bound is None else "lower")

    names = (FEATURE_CURVE, FEATURE_NOISE, FEATURE_UNCHANGED, FEATURE_DRAWN)
    seen = tuple(name for name in names if name in evidence.estimates)
    return drafted(test, seen, limit)


def _features_kept(case: Case) -> Draft | None:
    found = case.evidence.estimates.get(FEATURES_KEPT)
    if found is None:
        return None
    # Both are so rare that they take no share of the error.
    own = case.evidence.estimates.get(OWN_ROWS)
    name, passes = FEATURES_KEPT, "no more features were kept than is declared"
    answer = Answer("pass", found.value, passes)
    if found.value <= OWN_ERROR:
        reason = "more rows have their true features than the declared λ leaves"
        answer = Answer("fail", found.value, reason)
    elif own is not None and own.kind == "certified" and own.value <= HARDLY_CHANCE:
        reason = "synthetic features go with those that they replace: they were not drawn blindly"
        verdict: Verdict = "fail" if own.value <= OWN_ERROR else "inconclusive"
        name, answer = OWN_ROWS, Answer(verdict, own.value, reason)
    return drafted(answer, (name,), no_test=True)


def guessable_seed(case: Case, _: Any) -> Draft | None:
    """Return the check of whether a seed or a checksum gives the noise away."""
    found = case.evidence.estimates.get(SEEDS)
    if found is None:
        return None
    kind: Verdict = "pass"
    if found.value <= OWN_ERROR:
        kind = "fail" if found.kind == "certified" else "inconclusive"
    return drafted(Answer(kind, found.value, _SEED_WORDS[kind]), (SEEDS,))


_SEED_WORDS: Final[Mapping[Verdict, str]] = {
    "pass": "the noise does not come from any of the common seeds and checksums tried",
    "fail": "anybody can compute the noise and recover every true label",
    "inconclusive": "the released labels follow numbers that anybody can compute: they are the "
    "noise, or, in simulated data, drew the true labels",
}


def composition(case: Case, _: Any) -> Draft | None:
    """Return the check of whether labels of one person have fresh noise each time."""
    composed, limit = case.evidence.estimates.get(COMPOSED_EPSILON), case.claim.epsilon
    if composed is None:
        return None
    seem = "have" if composed.kind == "exact" else "seem to have"
    reason = (
        f"people {seem} several rows, each with fresh noise: for some the claim adds up to "
        f"ε = {number(composed.value, 'up')}"
    )
    answer = Answer("fail", composed.value, reason)
    if limit is not None and composed.value <= limit:
        answer = Answer("pass", composed.value, "no person's rows add up to more than is claimed")
    return drafted(answer, (COMPOSED_EPSILON,), limit)
