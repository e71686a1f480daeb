"""The lower bounds of ε: by true labels, by groups of rows, and by the release alone."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.doubts import doubt
from ldpaudit.audits.assumptions.standing import label_counts, standing
from ldpaudit.audits.assumptions.words import reading_words
from ldpaudit.audits.interface import AuditContext, Part
from ldpaudit.audits.mechanism.evidence import (
    insider_evidence,
    insider_evidence_of_all,
    outsider_evidence,
    subgroup_doubt,
    subgroup_evidence,
)
from ldpaudit.audits.mechanism.reports import report_evidence
from ldpaudit.error_budget import PROOFS
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.strongest import SELECTED, BoundEvidence
from ldpaudit.release import IndexArray
from ldpaudit.result import Bound, Estimate, Note
from ldpaudit.result.stated import (
    FEATURE_BLIND,
    INDEPENDENT,
    INSIDER,
    NOT_DERIVED,
    OUTSIDER,
    SUBGROUPS,
    UNSELECTED,
)

_GROUP_SOURCES = {
    "scores": "groups of rows that a model fitted on other rows is surest about",
    "anchors": "balls in feature space, chosen on other rows",
}


_METHODS = {
    "accuracy": "how often the best fixed guess of the label is right, against what an ε-DP "
    "channel allows at these label frequencies",
    "odds-ratio": "exact conditional bound of the odds ratio, which is at most e^{2ε}",
    "two-sided": "how often the labels that make one event likely have it, against labels that do "
    "not; labels and event were chosen by the claim and the labels' frequencies",
}


_BY_OTHER_ROWS: Final = (
    "the stronger of accuracy and two-sided, for labels and outputs that a random third of the "
    "rows chose, whatever the claim leads one to expect; counted in the others, at its own level"
)
_REFERENCES = {
    "accuracy": "Hoeffding (1956), Theorem 5; Ghazi et al. (2021), RR-Top-k",
    "odds-ratio": "Cornfield (1956)",
    "two-sided": "Jagielski, Ullman & Oprea (2020); Cornfield (1956)",
}


def _strongest_words(insider: BoundEvidence, alpha: float) -> str:
    """Return how the strongest bound from true labels came about at level 1 − alpha."""
    if insider.methods == SELECTED:
        return "the odds ratio of two labels and two outputs, which a selection does not change"
    primary, others = insider.design.primary, insider.by_other_rows
    share = insider.share * insider.design.weights[primary]
    words = (
        f"the stronger of {' and '.join(insider.methods)}, here '{insider.bound(alpha).method}'; "
        f"corrected: '{primary}', chosen before the outcomes were seen, has {share:.0%} of the "
        "error probability"
    )
    if others is None:
        return words
    return (
        f"{words}, and {others.share:.0%} goes to labels and outputs that a third of the rows chose"
    )


def bound_parts(context: AuditContext) -> Iterator[Part]:
    """Yield every lower bound of ε, at any level too, and the numbers beside it."""
    alpha, reports = 1 - context.plan.confidence, report_evidence(context)
    names, insider = (INSIDER, "True labels, strongest bound"), insider_evidence(context)
    groups, outsider = subgroup_evidence(context), outsider_evidence(context)
    if insider is not None:
        best, words = insider.bound(alpha), _strongest_words(insider, alpha)
        further = () if insider.methods == SELECTED else (UNSELECTED,)
        if reports is None:
            yield bound_of(context, names, best, words, None, *further)
        for method in insider.methods:
            own = f"{INSIDER}.{method}", f"True labels, {method.replace('-', ' ')}"
            words = f"{_METHODS[method]}; at its own level, not corrected for the other method"
            bound, reference = insider.by_method(method, alpha), _REFERENCES[method]
            yield bound_of(context, own, bound, words, reference, *further)
        others = insider.by_other_rows
        if others is not None and others.methods != SELECTED:
            own = f"{INSIDER}.other-rows", "True labels, as other rows suggest"
            bound = replace(others, share=1.0).bound(alpha)
            yield bound_of(context, own, bound, _BY_OTHER_ROWS, None, *further)
        yield from _observed(label_counts(context))
        of_all = insider_evidence_of_all(context)

        def of_the_least(level: float) -> float:
            every = math.inf if of_all is None else of_all.bound(level).epsilon
            return min(insider.bound(level).epsilon, every)

        yield Bound(INSIDER, of_the_least)
    if not isinstance(groups, str):
        words = (
            "the strongest bound within groups of rows whose released label equals the true one "
            "too often, or too rarely; a model found them on one half, the other half is counted, "
            f"both ways round, corrected for {len(groups.tests)} groups"
        )
        # At the level at which it counts against a claim: other bounds have the rest.
        bound = groups.bound(PROOFS.of(alpha, "subgroups"))
        own = SUBGROUPS, "True labels, groups of rows"
        shown = bound_of(context, own, bound, words, None, NOT_DERIVED, UNSELECTED)
        yield Bound.of(shown, lambda level: groups.bound(level).epsilon)
        # What noise shows of unknown columns is said with it; this is of the same cause.
        found = None if doubt(context) is not None else subgroup_doubt(context)
        if found is not None:
            yield Note.warning("mechanism", reading_words(context, found))
    if reports is not None:
        # The reports show more than the labels drawn from them.
        words = (
            "how often the declared protocol's likelihood ratio of two labels names the true one, "
            f"for {reports.protocol.guesses:,} guesses of reports in pairs, or a model of all that "
            "the other half's reports hold: the order of lists, digits, values that occur again; "
            "labels and pairs do not look at the reports"
        )
        reference = "Steinke, Nasr & Jagielski (2023), Theorem 5.2"
        shown = bound_of(context, names, reports.bound(alpha), words, reference)
        yield Bound.of(shown, lambda level: reports.bound(level).epsilon)
    if not isinstance(outsider, str):
        bound = outsider.bound(alpha)
        sampled = [one.sampled for one in outsider.tests if one.source == bound.method]
        sample = f" (a sample of {sampled[0]:,})" if sampled and sampled[0] else ""
        words = (
            f"how unanimous the released labels of {_GROUP_SOURCES[bound.method]}{sample} are; "
            f"corrected for {len(outsider.tests)} tests"
        )
        reference = "Reeve & Kabán (2019), Theorem 3; Hoeffding (1956), Theorem 5"
        alone = OUTSIDER, "The release alone"
        shown = bound_of(context, alone, bound, words, reference, NOT_DERIVED, UNSELECTED)
        yield Bound.of(shown, lambda level: outsider.bound(level).epsilon)


def _observed(counts: IndexArray) -> Iterator[Estimate]:
    table = counts[counts.sum(axis=1) > 0] + 0.5
    if len(table) < 2:
        return
    logs = np.log(table / table.sum(axis=1, keepdims=True))
    yield Estimate.estimated(
        "mechanism.epsilon_observed",
        "Observed frequencies",
        float(np.max(logs.max(axis=0) - logs.min(axis=0))),
        axis="epsilon",
        unit="nats",
        n=int(counts.sum()),
        method="the largest log-ratio of observed frequencies, half a row added to every cell",
        assumptions=(
            FEATURE_BLIND,
            "enough rows in every cell: the largest of several noisy ratios is too large",
        ),
    )


def bound_of(
    context: AuditContext,
    names: tuple[str, str],
    bound: EpsilonBound,
    method: str,
    reference: str | None,
    *further: str,
) -> Estimate:
    """Return a lower bound of ε; ``names`` are its id and title, ``further`` more assumptions."""
    kind, assumptions = standing(context, FEATURE_BLIND, INDEPENDENT, *further)
    return Estimate.lower_bound(
        *names,
        bound.epsilon,
        1 - bound.alpha,
        kind=kind,
        axis="epsilon",
        unit="nats",
        n=bound.n,
        method=method,
        assumptions=assumptions,
        reference=reference,
    )
