"""Does the release leak more about a label than the claimed ε?"""

import math
from collections.abc import Mapping
from typing import Any, Final

from ldpaudit import error_budget
from ldpaudit.judging.checks.bounds_of_others import above_the_claim, why_open
from ldpaudit.judging.checks.interface import Answer, Case, Draft, Evidence, drafted
from ldpaudit.judging.policy.sections import ClaimSection
from ldpaudit.mechanisms.capabilities import StagedLabel
from ldpaudit.release import DeclaredColumns
from ldpaudit.result.numbers import against, number
from ldpaudit.result.stated import (
    CHANGED_ROWS,
    CHANNEL_CONSISTENCY,
    DECLARED_EPSILON,
    EXCESS,
    FEATURE_BLIND_TEST,
    INSIDER,
    MARGINAL_CONSISTENCY,
    NOT_DERIVED,
    NOT_KNOWN,
    SELECTED,
    SHARED_WITH_OTHERS,
    SUBGROUPS,
    UNKNOWN_COLUMNS,
    shares,
)

CONSISTENCY: Final[tuple[str, ...]] = (CHANNEL_CONSISTENCY, MARGINAL_CONSISTENCY)
_LOOKED_INTO: Final = 0.05
"""The p-value up to which noise that rows of several strata share is a check of its own."""
_DIGITS: Final = 9
"""A sum of ε is exact to so many digits."""
_REFUTED = (
    "the claim is refuted: the noise depends on the features, or on the row's place in the file, "
    "although the declared mechanism looks at nothing but the true label"
)
_SHARES_NOISE = (
    "the claim is refuted: the noise of one person's row says what it did to another's, so anyone "
    "who knows some labels can read others"
)
IN_DOUBT = (
    "the released label may depend on the features, and where it does none of this audit's bounds "
    "of ε holds"
)
COLUMNS_IN_DOUBT = (
    "columns speak against the claim, and it is not known whether they were there before the "
    "noise: either the labels were not released as claimed, or these columns were computed "
    "from released labels, which reveals nothing"
)
_SELECTED = (
    "the counts fit the claim only with the shares of released labels changed: as if rows had been "
    "left out or repeated because of their released label, or labels overwritten, which reveals "
    "nothing more of the true ones; or as if noise had been drawn again until the label suited, "
    "which does"
)
_CHANGED = "some released labels follow from {by}, whatever the true ones are: {readings}"
_OVERWRITTEN = (
    "a rule seems to have overwritten them after the noise. That reveals nothing, but those rows "
    "are not as declared"
)
_OR_MADE = (
    "either a rule overwrote labels after the noise, or {by} {was} computed from the released "
    "labels. Neither reveals anything, but the audit cannot tell which"
)
LATER_STAGES = (
    "nothing contradicts the claim in the first of {stages} stages, but the channels of later rows "
    "depend on what a model learnt from the rows before, and no bound holds for them"
)
POWER_NOT_KNOWN = "how much this audit could miss is not known"
POWER_UNKNOWN = (
    "how much this audit could miss is known only for labels that follow the claimed channel, and "
    "these do not"
)


def _doubt(case: Case) -> str | None:
    """Return why the rows may not be as declared although the claim is not refuted."""
    found, circumstances = case.evidence.estimates, case.circumstances
    if CHANGED_ROWS in found:
        by = circumstances.changed_by or "features"
        was = "was" if by.startswith("column ") else "were"
        readings = _OR_MADE.format(by=by, was=was) if circumstances.may_be_made else _OVERWRITTEN
        return _CHANGED.format(by=by, readings=readings)
    if SELECTED in found:
        return _SELECTED
    return COLUMNS_IN_DOUBT if UNKNOWN_COLUMNS in found else None


def claimed_epsilon(case: Case, _: Any) -> Draft | None:
    """Return the check of a column: by what is declared alone, where that is too much."""
    estimates, circumstances = case.evidence.estimates, case.circumstances
    beyond = beyond_the_policy(
        *(case.policy.claim, case.claim.epsilon, "", circumstances.columns),
        prior=circumstances.prior_epsilon,
        evidence=(DECLARED_EPSILON,) if DECLARED_EPSILON in estimates else (),
    )
    if beyond is not None:
        return beyond
    return _across_strata(case) if case.by_strata else _measured(case)


def _across_strata(case: Case) -> Draft | None:
    """Return the check of a column whose strata answer for themselves, if they share noise."""
    shared = case.evidence.estimates.get(SHARED_WITH_OTHERS)
    if shared is None or shared.value > _LOOKED_INTO:
        return None

    def test(alpha: float) -> Answer:
        if shared.value <= alpha:
            return Answer("fail", None, _SHARES_NOISE)
        return Answer("pass", None, "no row's noise is shown to reveal another's")

    return drafted(test, (SHARED_WITH_OTHERS,))


def beyond_the_policy(
    claim: ClaimSection | None,
    epsilon: float | None,
    extent: str,
    declared: DeclaredColumns | None,
    prior: float = 0.0,
    evidence: tuple[str, ...] = (),
) -> Draft | None:
    """Return a check that fails because more is declared than a policy allows; None if it is not.

    Exact arithmetic, whatever was measured.

    ``epsilon``: what is declared of what was audited, in nats; ``extent``: what it is added up
    over, such as ``"over 2 releases"``; ``declared``: all private columns of the files, where some
    of them are not audited; ``prior``: what private histograms of the labels cost besides, in nats.
    """
    most = None if claim is None else claim.limit.epsilon
    if declared is not None and declared.epsilon is not None:
        epsilon, columns = declared.epsilon, f"all {declared.count} private columns"
        extent = f"of {columns} {extent}" if "releases" in extent else f"over {columns}"
    if prior > 0 and epsilon is not None:
        epsilon, extent = epsilon + prior, f"{extent} with the private histogram".strip()
    if claim is None or most is None or epsilon is None or epsilon <= most * (1 + 1e-9):
        return None
    value, allowed = against(round(epsilon, _DIGITS), most, "up")
    place = f" {extent}" if extent else ""
    reason = f"ε = {value} is declared{place}, and the policy allows {allowed}{claim.limit.words}"
    return drafted(Answer("fail", epsilon, reason), evidence, most, no_test=True)


def _measured(case: Case) -> Draft:
    evidence, limit = case.evidence, case.claim.epsilon
    tests = {FEATURE_BLIND_TEST} & evidence.estimates.keys()
    proofs = shares(set(evidence.bounds) | tests)
    elsewhere = above_the_claim(case)

    def best_bound(alpha: float, *, firm: bool = False) -> float | None:
        found = (
            evidence.bounds[name](alpha * part)
            for name, part in proofs.items()
            if name in evidence.bounds and not (firm and is_conditional(evidence, name))
        )
        return max(found, default=None)

    def failure(alpha: float) -> Answer | None:
        if CHANGED_ROWS in evidence.estimates:
            # Which rows bounds leave out was decided by their released labels.
            alpha *= error_budget.CHANGED_ROWS
        if limit is None or math.isinf(limit):
            return None
        bound = best_bound(alpha, firm=True)
        exceeded = bound is not None and bound > limit
        # Where the released label depends on the features, bounds of ε miss their assumption. Where
        # one of them exceeds the claim, it is refuted either way; this only decides how to put it.
        share = 1.0 if exceeded else proofs.get(FEATURE_BLIND_TEST, 0.0)
        if tests and evidence.estimates[FEATURE_BLIND_TEST].value <= alpha * share:
            return Answer("fail", None, _REFUTED + _in_a_group(proofs, evidence, alpha, limit))
        if exceeded:
            return Answer("fail", bound, "a certified lower bound lies above the claim", "lower")
        shared = evidence.estimates.get(SHARED_WITH_OTHERS)
        of_shared_noise = error_budget.PROOFS.of(alpha, "shared noise")
        seen = error_budget.SHARED_NOISE.of(of_shared_noise, "seen")
        if shared is not None and shared.value <= seen:
            return Answer("fail", None, _SHARES_NOISE)
        return None

    def test(alpha: float) -> Answer:
        if limit is None:
            return Answer("inconclusive", None, "nothing was claimed, so nothing was judged")
        if math.isinf(limit):
            return Answer("inconclusive", None, "the claim promises nothing: its ε is infinite")
        failed = failure(alpha)
        if failed is None and elsewhere is not None:
            reason, bound = why_open(elsewhere, case), best_bound(alpha, firm=True)
            return Answer("inconclusive", bound, reason, None if bound is None else "lower")
        if not proofs and failed is None:
            return Answer("inconclusive", None, _doubt(case) or "no audit could bound ε from below")
        bound, firm = best_bound(alpha), best_bound(alpha, firm=True)
        if failed is not None:
            return failed
        if bound is None:
            return Answer("inconclusive", None, IN_DOUBT)
        if bound > limit and (firm is None or firm <= limit):
            return Answer("inconclusive", bound, COLUMNS_IN_DOUBT, "lower")
        # What is shown beside a claim is certified, where anything is.
        bound = bound if firm is None else firm
        allowed = case.policy.audit.max_undetected_excess.at(limit)
        weakness = _weakness(case, allowed, alpha)
        staged = case.claim.offers(StagedLabel)
        if weakness is None and staged is not None and staged.stages > 1 and allowed < math.inf:
            weakness = LATER_STAGES.format(stages=staged.stages)
        if weakness is not None:
            return Answer("inconclusive", bound, weakness, "lower")
        return Answer("pass", bound, "no certified lower bound lies above the claim", "lower")

    ids = (*proofs, EXCESS) if EXCESS in evidence.estimates else tuple(proofs)
    ids += () if elsewhere is None else (elsewhere.id,)
    return drafted(test, ids, limit, failure=failure)


def is_conditional(evidence: Evidence, name: str) -> bool:
    """Return whether a bound holds only if its columns were there before the noise."""
    found = evidence.estimates.get(name)
    return found is not None and NOT_DERIVED + NOT_KNOWN in found.assumptions


def _in_a_group(proofs: Mapping[str, float], evidence: Evidence, alpha: float, limit: float) -> str:
    """Return how much more a group of rows seems to give away than claimed, if one was found."""
    # What it gives away for certain is not known: the channel may use features within the group.
    bound = evidence.bounds.get(SUBGROUPS)
    found = 0.0 if bound is None else bound(alpha * proofs[SUBGROUPS])
    if found <= limit:
        return ""
    return (
        "; in one group of rows labels come through as at "
        f"ε = {number(found, 'down')} or more, if one channel served the whole group"
    )


def _weakness(case: Case, allowed: float, alpha: float) -> str | None:
    """Return why not having found a violation says too little, None where it says enough."""
    evidence, estimates = case.evidence, case.evidence.estimates
    power = estimates.get(EXCESS)
    if (doubt := _doubt(case)) is not None:
        return doubt
    if power is None:
        return None if math.isinf(allowed) else POWER_NOT_KNOWN
    tests = (estimates[name].value for name in CONSISTENCY if name in estimates)
    # Without true labels the power assumes that the claim is right about this release.
    assumes_claim = power.kind == "estimated" and INSIDER not in evidence.bounds
    if assumes_claim and any(p_value <= alpha for p_value in tests):
        return POWER_UNKNOWN
    missed = evidence.undetected_excess(alpha)
    if missed is None or missed <= allowed:
        return None
    if math.isinf(missed):
        return (
            "the audit is too weak: no excess over the claimed ε, however large, would have been "
            "found with 90 % probability"
        )
    return (
        f"the audit is too weak: an excess of up to {number(missed, 'up')} over the claimed ε "
        f"could have gone unnoticed, and the policy allows {number(allowed)}"
    )
