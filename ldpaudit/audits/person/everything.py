"""Everything of a person: several private columns over several releases, their bounds added up."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations

import numpy as np

from ldpaudit.audits.assumptions.stated import INDEPENDENT
from ldpaudit.audits.person.answers import DRAWS, EPSILON, LOWER
from ldpaudit.audits.person.audit import OWN_DRAWS, REFUTED_DRAWS
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE
from ldpaudit.estimators.person.shared_draws import MOST_ROWS, SharedDraws, shared_draws
from ldpaudit.estimators.person.sums import sum_lower
from ldpaudit.release import Release, ReleasedFiles
from ldpaudit.result import Estimate, Finding, Note


def person_finding(
    columns: Mapping[str, Finding],
    files: Sequence[Finding],
    draws: SharedDraws | None,
    epsilon: float | None,
    confidence: float,
) -> Finding:
    """Return ε of everything that was released of a person: as declared, and at least.

    ``columns``: what was found of each column over the releases, by what it is called; ``files``:
    of the columns of each file together; ``draws``: of one column and another in another file.
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
    if draws is not None:
        estimates.append(_p_value(draws, confidence))
    bounds = _bounds(columns)
    open_ones = [called for called in columns if called not in bounds]
    if open_ones:
        words = f"Everything of a person was not bounded in {', '.join(open_ones)}"
        notes.append(Note.info("person", f"{words}: see there."))
    if not bounds:
        return Finding(tuple(estimates), notes=tuple(notes))
    tests = [e.value for f in files for e in f.estimates if e.id == DRAWS]
    tests += [] if draws is None else [draws.p_value]
    apart = all(p_value > REFUTED_DRAWS for p_value in tests)
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


def draws_between(files: ReleasedFiles, rng: np.random.Generator) -> SharedDraws | None:
    """Test the noise of one column in one file against that of another column in another file.

    Of people who are in all files, with their true labels; None without these, or where no two
    people have the same ones. Within a file, and within a column, the nodes below test.
    """
    people = np.flatnonzero((files.rows >= 0).all(axis=1))
    people = people if len(people) <= MOST_ROWS else rng.permutation(people)[:MOST_ROWS]
    answers = [
        (place, column.take(files.rows[people, place]))
        for place, file in enumerate(files.files)
        for column in ((file,) if isinstance(file, Release) else file.columns)
    ]
    truths = [one.truth for _, one in answers if one.truth is not None]
    pairs = [
        (i, j)
        for (i, (a, one)), (j, (b, other)) in combinations(enumerate(answers), 2)
        if a != b and one.label != other.label
    ]
    if len(truths) < len(answers) or not pairs:
        return None
    strata = np.zeros(len(people), np.int64)
    for _, one in answers:
        if one.strata is not None:
            strata = strata * one.strata.count + one.strata.codes
    test = shared_draws(
        np.stack(truths, axis=1),
        np.stack([one.released for _, one in answers], axis=1),
        strata,
        [one.numeric is None and one.outputs == one.classes for _, one in answers],
        pairs,
    )
    return test if test.rows else None


def _p_value(draws: SharedDraws, confidence: float) -> Estimate:
    return Estimate.upper_bound(
        DRAWS,
        "Noise of each column and file of its own (p-value)",
        max(draws.p_value, SMALLEST_P_VALUE),
        confidence,
        kind="certified",
        n=draws.rows,
        method="p-value: among people with the same true labels of one column in one file and of "
        "another in another any pairing of their outputs is equally likely; "
        f"{draws.tests} exact tests, Bonferroni",
        assumptions=(INDEPENDENT,),
        reference="Birch (1964): the exact conditional test of several tables",
    )


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
