"""The chart of claimed against measured ε."""

import math
from collections.abc import Sequence
from functools import partial

from ldpaudit.reports.charts import specifications as charts
from ldpaudit.reports.charts.interval_rows import intervals
from ldpaudit.reports.charts.intervals import MOST_MARKS, Figure, Table, listed
from ldpaudit.reports.charts.measuring import distinct
from ldpaudit.reports.charts.row_words import Row
from ldpaudit.reports.text.quantities import Quantity
from ldpaudit.result import AuditResult


def epsilon_figure(quantities: Sequence[Quantity], result: AuditResult, claim: str) -> Figure:
    """Return claimed against measured ε, every method on one axis."""
    claimed = result.mechanism.epsilon
    limits = [claimed] if claimed is not None and math.isfinite(claimed) else []
    drawn = [q for q in quantities if math.isfinite(q.estimate.value)][:MOST_MARKS]
    ends = [e for q in drawn for e in (q.estimate.value, q.estimate.high) if e is not None]
    largest = max([*filter(math.isfinite, ends), *limits, 0.1])
    axis = charts.Axis("ε (nats)", 0.0, largest * 1.12)
    rules = [charts.Rule(limit, f"claimed ε = {claim}", "", 0, True) for limit in limits]
    refuted = any(c.id == "claimed-epsilon" and c.verdict == "fail" for c in result.checks)
    labels = distinct(q.name for q in drawn)
    rows = [
        _epsilon_row(label, q, claimed, refuted=refuted)
        for label, q in zip(labels, drawn, strict=True)
    ]
    description = (
        f"{_claim_words(claim)} {listed(quantities)} A mark to the right of the claim "
        "refutes it where the check at the corrected level says so; one to the left proves nothing."
    )
    names = ("epsilon", "Measured ε against the claim", description)
    table = Table(("Method", "ε (nats)"), tuple((q.name, q) for q in quantities))
    return Figure.of(names, partial(intervals, rows, rules, axis), table)


def _epsilon_row(label: str, quantity: Quantity, claimed: float | None, *, refuted: bool) -> Row:
    """Return a row; a bound counts as beyond the claim only if the corrected check failed."""
    estimate = quantity.estimate
    above = claimed is not None and estimate.value > claimed
    beyond = above and quantity.mark == "lower" and refuted
    remark = " · above the claim" if beyond else " · above, uncorrected" if above else ""
    if above and quantity.mark != "lower":
        remark = " · above, not certified"
    return Row(
        label=label,
        text=f"{quantity.text}{remark}",
        # "≥" says that it is a lower bound; all of the words are in the table.
        words=quantity.words.replace(", lower bound, uncorr", ", uncorr"),
        mark=quantity.mark,
        value=max(estimate.value, 0.0),
        low=None if estimate.low is None else max(estimate.low, 0.0),
        high=estimate.high if estimate.high is not None and math.isfinite(estimate.high) else None,
        beyond=beyond,
    )


def _claim_words(claim: str) -> str:
    return f"The claim is ε = {claim} nats." if claim else "Nothing was claimed."
