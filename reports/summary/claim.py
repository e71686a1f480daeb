"""ε claimed and measured: the bound that decides, and the strongest of each other kind."""

import math
from collections.abc import Iterator
from typing import Final

from ldpaudit.reports.charts.epsilon import epsilon_figure
from ldpaudit.reports.parts.mechanism import measured_epsilon
from ldpaudit.reports.parts.part import Section
from ldpaudit.reports.summary.told import Told
from ldpaudit.reports.text.numbers import fold
from ldpaudit.reports.text.quantities import Quantity
from ldpaudit.reports.text.wording import missing

MOST: Final = 6
"""Rows of the picture; the part at the end of the page lists all."""
_FIRST: Final = (
    "mechanism.epsilon_lower",
    "mechanism.subgroup_epsilon_lower",
    "release_only.epsilon_lower",
    "mechanism.epsilon_observed",
)
_READING: Final = (
    "A certified lower bound means that the release leaks at least that much. Below the claim it "
    "proves nothing: it is what this audit found."
)
_UNCORRECTED: Final = (
    "Bounds marked “uncorrected” hold each at its own level. They decide nothing: who looks at "
    "several sees one too large now and then, and the first bound allows for that."
)


def claim_told(section: Section) -> Told:
    """Return the claim, what was measured, and both in one picture."""
    result, printer = section.result, section.printer
    drawn = tuple(_drawn(section))[:MOST]
    claim = promise(
        result.mechanism.epsilon, printer.claim, bool(result.labels or result.releases)
    ) + _decided(section)
    words = (claim, _READING if drawn else "", _uncorrected(drawn))
    return Told(
        "claim",
        "ε claimed and measured",
        tuple(filter(None, words)),
        (epsilon_figure(drawn, result, printer.claim),) if drawn else (),
        missing="" if drawn else missing(result.audits, "mechanism"),
        more="epsilon",
    )


def _drawn(section: Section) -> Iterator[Quantity]:
    """Yield what decides, the usual bounds, and the first of every further audit."""
    measured = [q for q in measured_epsilon(section) if math.isfinite(q.estimate.value)]
    by_id = {quantity.id: quantity for quantity in measured}
    decisive = section.printer.decisive
    chosen = {} if decisive is None else {decisive.id: decisive}
    chosen |= {name: by_id[name] for name in _FIRST if name in by_id}
    audits = {quantity.estimate.section for quantity in chosen.values()}
    for quantity in measured:
        if quantity.estimate.section not in audits:
            audits.add(quantity.estimate.section)
            chosen[quantity.id] = quantity
    yield from chosen.values()


def promise(claimed: float | None, claim: str, several: bool) -> str:
    """Return what a claimed ε promises; ``claim`` is ε as it is printed."""
    if claimed is None:
        return "Nothing was claimed, so there is no claim to test."
    if math.isinf(claimed):
        return "The claim is ε = ∞: it promises nothing, so nothing could refute it."
    shifting = "a released label shifts the odds between two true labels"
    if several:
        shifting = "all that is released of a person shifts the odds between any true labels"
    return f"The claim is ε = {claim}: {shifting} at most {fold(claimed)}."


def _decided(section: Section) -> str:
    decisive, claimed = section.printer.decisive, section.result.mechanism.epsilon
    if decisive is None or claimed is None or math.isinf(claimed):
        return ""
    check = next(c for c in section.result.checks if c.id == "claimed-epsilon")
    bound = f" At least ε = {decisive.text.removeprefix('≥ ')} is certified"
    return f"{bound}: the claim does not hold." if check.verdict == "fail" else f"{bound}."


def _uncorrected(drawn: tuple[Quantity, ...]) -> str:
    return _UNCORRECTED if any("uncorrected" in q.words for q in drawn) else ""
