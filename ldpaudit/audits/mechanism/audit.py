"""The mechanism: what was claimed, whether the counts agree, and what ε is at least.

Exact numbers come from the claim alone. With true labels ε is bounded from below by true against
released labels, and without (as a cross-check also with them) by the release alone. An audit can
refute a claim; it cannot prove one.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ldpaudit.audits.assumptions.rows import counted
from ldpaudit.audits.assumptions.standing import label_counts, over_all_rows, standing
from ldpaudit.audits.assumptions.stated import (
    FEATURE_BLIND,
    INDEPENDENT,
    NOT_DERIVED,
    UNSELECTED,
)
from ldpaudit.audits.claimed_channel import aligned_channel, feature_dependence
from ldpaudit.audits.epsilon_proofs import INSIDER, INSIDER_SHARES, OUTSIDER, SUBGROUPS
from ldpaudit.audits.interface import AuditContext, Counts, Need
from ldpaudit.audits.mechanism.evidence import (
    insider_evidence,
    outsider_evidence,
    report_counts,
    subgroup_evidence,
)
from ldpaudit.audits.mechanism.exact import exact_curves, exact_estimates
from ldpaudit.audits.mechanism.special_cases import lattice_finding, rare_finding
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.consistency import (
    SMALLEST_P_VALUE,
    channel_consistency,
    likelihood_ratio_p_value,
    marginal_consistency,
)
from ldpaudit.estimators.epsilon.guesses import epsilon_lower
from ldpaudit.estimators.epsilon.strongest import SELECTED, BoundEvidence
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.result import Estimate, Finding, Note

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
_REFERENCES = {
    "accuracy": "Hoeffding (1956), Theorem 5; Ghazi et al. (2021), RR-Top-k",
    "odds-ratio": "Cornfield (1956)",
    "two-sided": "Jagielski, Ullman & Oprea (2020); Cornfield (1956)",
}


class MechanismAudit:
    """Compares the released labels with the claim."""

    id = "mechanism"
    counts: Counts = "rows"
    needs: tuple[Need, ...] = ()

    def unavailable(self, context: AuditContext) -> str | None:  # noqa: ARG002
        """Return None: the audit always applies."""
        return None

    def run(self, context: AuditContext) -> Finding:
        """Run it."""
        exact, curves = exact_estimates(context.claim), tuple(exact_curves(context.claim))
        if context.release.strata is not None and context.claim.by_stratum:
            # Each stratum is bounded by itself.
            return Finding(tuple(exact), curves)
        noise = counted(context)
        agreement, differing = _agreement(context)
        rare, lattice = rare_finding(context), lattice_finding(context)
        found = list(_bounds(context))
        estimates = [*exact, *agreement, *rare.estimates, *lattice.estimates]
        bounds = {identifier: bound for identifier, bound, _ in found}
        return Finding(
            estimates=(*estimates, *(one for _, _, shown in found for one in shown)),
            curves=curves,
            notes=(*differing, *rare.notes, *lattice.notes, *_notes(context)),
            bounds={**lattice.bounds, **bounds} if noise.holds else {},
        )


_Found = tuple[str, Callable[[float], float], Iterable[Estimate]]


def _bounds(context: AuditContext) -> Iterator[_Found]:
    """Yield every lower bound of ε: its id, the bound at any level, and the numbers to show."""
    further: tuple[str, ...]
    alpha, reports = 1 - context.plan.confidence, report_counts(context)
    title, insider = "True labels, strongest bound", insider_evidence(context)
    if insider is not None:
        shown = list(_insider(context, insider))
        if reports is None:
            words = (
                f"the stronger of {' and '.join(insider.methods)}, here "
                f"'{insider.bound(alpha).method}'; corrected: '{insider.design.primary}', chosen "
                "before the outcomes were seen, has "
                f"{insider.design.weights[insider.design.primary]:.0%} of the error probability"
            )
            if insider.methods == SELECTED:
                words = (
                    "the odds ratio of two labels and two outputs, which a selection does not "
                    "change"
                )
            further = () if insider.methods == SELECTED else (UNSELECTED,)
            best = _bound(context, (INSIDER, title), insider.bound(alpha), words, None, *further)
            shown.insert(0, best)
        yield INSIDER, lambda level: insider.bound(level).epsilon, shown
    groups = subgroup_evidence(context)
    if not isinstance(groups, str):
        words = (
            "the strongest bound within groups of rows whose released label equals the true one "
            "too often, or too rarely; a model found them on one half, the other half is counted, "
            f"both ways round, corrected for {len(groups.tests)} groups"
        )
        # At the level at which it counts against a claim: other bounds have the rest.
        bound, names = (
            groups.bound(alpha * INSIDER_SHARES[SUBGROUPS]),
            "True labels, groups of rows",
        )
        further = (NOT_DERIVED, UNSELECTED)
        shown = [_bound(context, (SUBGROUPS, names), bound, words, None, *further)]
        yield SUBGROUPS, lambda level: groups.bound(level).epsilon, shown
    if reports is not None:
        # The reports show more than the labels drawn from them.
        words = (
            "how often the declared protocol's likelihood ratio of two labels names the true one, "
            f"for {reports.guesses} guesses of reports in pairs; labels and pairs do not look at "
            "the reports"
        )
        reference = "Steinke, Nasr & Jagielski (2023), Theorem 5.2"
        bound = epsilon_lower(reports, alpha)
        shown = [_bound(context, (INSIDER, title), bound, words, reference)]
        yield INSIDER, lambda level: epsilon_lower(reports, level).epsilon, shown
    outsider = outsider_evidence(context)
    if not isinstance(outsider, str):
        bound = outsider.bound(alpha)
        words = (
            f"how unanimous the released labels of {_GROUP_SOURCES[bound.method]} are; corrected "
            f"for {len(outsider.tests)} tests"
        )
        reference = "Reeve & Kabán (2019), Theorem 3; Hoeffding (1956), Theorem 5"
        names, further = "The release alone", (NOT_DERIVED, UNSELECTED)
        shown = [_bound(context, (OUTSIDER, names), bound, words, reference, *further)]
        yield OUTSIDER, lambda level: outsider.bound(level).epsilon, shown


def _insider(context: AuditContext, evidence: BoundEvidence) -> Iterator[Estimate]:
    """Yield each method's bound at its own level, and the observed frequencies."""
    alpha, counts = 1 - context.plan.confidence, label_counts(context)
    further = () if evidence.methods == SELECTED else (UNSELECTED,)
    for method in evidence.methods:
        names = f"{INSIDER}.{method}", f"True labels, {method.replace('-', ' ')}"
        words = f"{_METHODS[method]}; at its own level, not corrected for the other method"
        bound, reference = evidence.by_method(method, alpha), _REFERENCES[method]
        yield _bound(context, names, bound, words, reference, *further)
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


def _bound(
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


def _agreement(context: AuditContext) -> tuple[list[Estimate], list[Note]]:
    """Compare the counts with the claimed channel."""
    channel = aligned_channel(context)
    if channel is None:
        return [], []
    every = over_all_rows(context)
    rows, labels = counted(every).rows, every.release.released
    seen = labels if rows is None else labels[rows]
    released = np.bincount(seen, minlength=len(channel.outputs))
    estimates, alpha = [], 1 - context.plan.confidence
    p_value = marginal_consistency(released.astype(np.int64), channel.matrix)
    if p_value is not None:
        words = (
            "the smallest level at which no mixture of the claimed channel's rows lies within the "
            "simultaneous Clopper–Pearson intervals of the released labels' frequencies"
        )
        title = "Released shares against the declaration (p-value)"
        names = ("mechanism.marginal_consistency", title)
        estimates.append(_p_value(context, names, p_value, words))
    if context.release.truth is not None:
        estimates += _cell_agreement(context, channel, alpha)
    p_values = [e.value for e in estimates if e.side == "upper"]
    if not any(value <= alpha / len(p_values) for value in p_values):
        return estimates, []
    text = (
        "The released labels do not follow the claimed mechanism: an honest release would look "
        f"like this at most {alpha:.0%} of the time. The claimed λ or ε may be in another "
        "parametrisation, or labels may have been changed afterwards."
    )
    return estimates, [Note.warning("mechanism", text)]


def _cell_agreement(context: AuditContext, channel: Channel, alpha: float) -> Iterator[Estimate]:
    counts = label_counts(context)
    test = channel_consistency(counts, channel.matrix, alpha)
    words = f"exact binomial tests of {test.cells} entries of the channel, Bonferroni"
    title = "Counts against the declared channel (p-value)"
    names = ("mechanism.channel_consistency", title)
    yield _p_value(context, names, test.p_value, words)
    yield Estimate.lower_bound(
        "mechanism.inconsistent_entries",
        "Entries of the channel outside their intervals",
        test.inconsistent,
        context.plan.confidence,
        method=f"entries of the channel, of {test.cells}, outside their simultaneous intervals",
        assumptions=(INDEPENDENT,),
        reference="Clopper & Pearson (1934)",
    )
    yield Estimate.estimated(
        "mechanism.channel_consistency.g-test",
        "Counts against the declared channel, G test (p-value)",
        max(likelihood_ratio_p_value(counts, channel.matrix), SMALLEST_P_VALUE),
        n=int(counts.sum()),
        unit="p-value",
        method="p-value of the likelihood-ratio (G) test of all entries at once",
        assumptions=("counts are large: the χ² distribution is an approximation",),
        reference="Wilks (1938)",
    )


def _p_value(
    context: AuditContext, names: tuple[str, str], p_value: float, method: str
) -> Estimate:
    """Return a valid p-value as a certified upper bound; ``names`` are its id and title.

    Under the claim, data that contradict it as strongly have at most this probability. The level
    is the one at which the report calls the claim contradicted.
    """
    rows = counted(context).rows
    kind, assumptions = standing(context, INDEPENDENT)
    return Estimate.upper_bound(
        *names,
        max(p_value, SMALLEST_P_VALUE),
        context.plan.confidence,
        kind=kind,
        n=len(context.release) if rows is None else len(rows),
        unit="p-value",
        method=f"p-value: {method}",
        assumptions=assumptions,
        reference="Clopper & Pearson (1934)",
    )


def _notes(context: AuditContext) -> Iterator[Note]:
    dependent, truth = feature_dependence(context), context.release.truth
    groups, outsider = subgroup_evidence(context), outsider_evidence(context)
    if dependent is not None:
        text = f"Counts of labels alone give no bound of ε: {dependent}."
        yield Note.warning("mechanism", text)
        return
    if truth is not None and insider_evidence(context) is None:
        text = "True labels give no bound of ε: fewer than two classes occur among them."
        yield Note.warning("mechanism", text)
    elif truth is not None and isinstance(groups, str):
        text = f"Groups of rows were not bounded by themselves: {groups}."
        yield Note.info("mechanism", text)
    if isinstance(outsider, str):
        yield Note.info("mechanism", f"No bound of ε from the release alone: {outsider}.")
    if context.claim.traits.outputs == "unknown":
        text = (
            "No mechanism is declared. The bounds of ε assume that the released label was drawn "
            "from the true label alone; for a mechanism that uses the features they do not hold."
        )
        yield Note.info("mechanism", text)
