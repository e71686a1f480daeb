"""Everything of a person: several private columns over several releases, their bounds added up."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ldpaudit.audits.person.columns import OWN_DRAWS, REFUTED_DRAWS
from ldpaudit.audits.person.names import DRAWS, EPSILON, LOWER
from ldpaudit.estimators.person.sums import sum_lower
from ldpaudit.result import Estimate, Finding, Note


def person_finding(
    columns: Mapping[str, Finding],
    files: Sequence[Finding],
    epsilon: float | None,
    confidence: float,
) -> Finding:
    """Return ε of everything that was released of a person: as declared, and at least.

    ``columns``: what was found of each column over the releases, by what it is called; ``files``:
    of the columns of each file together.
    """
    estimates, notes = [], []
    if epsilon is not None:
        estimates.append(
            Estimate.exact(
                EPSILON,
                "Claimed ε of everything that was released of a person",
                epsilon,
                axis="epsilon",
                unit="nats",
                method="the ε of each column over the releases, added up; of columns that one "
                "mechanism released together that of the mechanism, for each release",
            )
        )
    bounds = _bounds(columns)
    open_ones = [called for called in columns if called not in bounds]
    if open_ones:
        words = f"Everything of a person was not bounded in {', '.join(open_ones)}"
        notes.append(Note.info("person", f"{words}: see there."))
    if not bounds:
        return Finding(tuple(estimates), notes=tuple(notes))
    apart = not any(e.id == DRAWS and e.value <= REFUTED_DRAWS for f in files for e in f.estimates)
    bound = partial(_together, tuple(bounds.values()), apart)
    behind = [e for f in columns.values() for e in f.estimates if e.id == LOWER]
    assumptions = dict.fromkeys(text for e in behind for text in e.assumptions)
    estimates.append(
        Estimate.lower_bound(
            LOWER,
            "Everything of a person, strongest bound",
            bound(1 - confidence),
            confidence,
            kind="certified",
            axis="epsilon",
            unit="nats",
            n=min((e.n for e in behind if e.n is not None), default=None),
            method="the bounds of the columns over the releases, added up: their evidence is "
            "independent, and together they may miss as often as one (Fisher's method)"
            if apart
            else "the largest bound of a column over the releases, corrected for the choice",
            assumptions=(*assumptions, *((OWN_DRAWS,) if apart else ())),
            reference="Fisher (1932), section 21.1",
        )
    )
    return Finding(tuple(estimates), notes=tuple(notes), bounds={LOWER: bound})


def _bounds(columns: Mapping[str, Finding]) -> dict[str, Callable[[float], float]]:
    """Return the certified bounds of the columns that have one."""
    certified = {
        called: any(e.id == LOWER and e.kind == "certified" for e in found.estimates)
        for called, found in columns.items()
    }
    return {c: f.bounds[LOWER] for c, f in columns.items() if certified[c] and LOWER in f.bounds}


def _together(bounds: Sequence[Callable[[float], float]], apart: bool, alpha: float) -> float:
    if apart:
        return sum_lower(bounds, alpha)
    return max(bound(alpha / len(bounds)) for bound in bounds)
