"""Fresh, remembered or used again: how the noise of several releases goes together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from ldpaudit.arrays import BoolArray, IndexArray
from ldpaudit.audits.person.answers import Answers
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE
from ldpaudit.estimators.person.noise import (
    agreement_share,
    association_p_value,
    changed_by_noise,
    fresh_agreement,
)
from ldpaudit.estimators.person.without_truth import (
    fresh_mixture,
    fresh_p_value,
    least_changed,
    remembered_mixture,
    remembered_p_value,
    remembered_share_lower,
)

Told = Literal["fresh", "remembered", "partly", "reused", "dependent", "unclear"]
"""What the noise of the releases looks like."""

_CLEAR: Final = 0.005
"""Noise is called by what refutes the other kinds at this level; verdicts have their own."""
_FEWEST: Final = 30
_NONE: Final = 0.25
_CLEARLY_MORE: Final = 0.25
"""Remembered noise that needs so many more labels to have changed is not believed."""


@dataclass(frozen=True)
class FoundNoise:
    """How the noise of several releases goes together.

    Attributes
    ----------
    told : str
        What it looks like.
    fresh, remembered, reused : float or None
        P-values: of noise of its own in each release; of the same answer for a label that did not
        change; of random numbers that were not used again. None where not tested.
    share : tuple of three float or None
        The share of answers given twice, its lower and its upper bound.
    least : tuple of two float or None
        The least share of people whose label changed, were noise fresh, and were it remembered.
    people : int
        How many were compared.
    """

    told: Told
    fresh: float | None
    remembered: float | None
    reused: float | None
    share: tuple[float, float, float] | None
    least: tuple[float, float] | None
    people: int

    def as_claimed(self, noise: str | None) -> float | None:
        """Return the p-value of what is claimed of the noise, None where nothing was tested."""
        claimed = {"fresh": self.fresh, "remembered": self.remembered}.get(noise or "")
        tests = [p for p in (claimed, self.reused) if p is not None]
        return min(1.0, len(tests) * min(tests)) if tests else None


def found_noise(seen: Answers) -> FoundNoise:
    """Return how the noise of the releases goes together."""
    return _with_truth(seen) if seen.knows_truth else _without_truth(seen)


def _with_truth(seen: Answers) -> FoundNoise:
    flips = [changed_by_noise(c.truth, c.release.released) for c in seen.contexts]
    unchanged, again, kept = [], [], True
    for pair in seen.pairs:
        people = seen.releases.in_both(*pair)
        changed = [flips[place][seen.releases.rows[people, place]] for place in pair]
        one, two = (seen.releases.truth(place, people) for place in pair)
        alike, strata = one == two, one.astype(np.int64) * len(seen.releases.classes) + two
        answers = [seen.releases.released(place, people) for place in pair]
        if pair in seen.neighbours:  # A label that changed in between may have a new answer.
            kept &= bool((answers[0] == answers[1])[alike].all())
        unchanged.append(_tested(changed, strata, alike))
        again.append(_tested(changed, strata, ~alike))
        again += _by_place(seen, pair, flips)
    fresh, reused = _smallest(unchanged), _smallest(again)
    share, alpha = _share(seen), min(seen.alpha, _CLEAR)
    told: Told = "unclear"
    if reused is not None and reused <= alpha:
        told = "reused"
    elif fresh is not None and fresh <= alpha:
        told = "dependent" if share is None or share[0] <= 0 else "partly"
        told = "remembered" if kept else told
    elif fresh is not None and (share is None or share[2] <= _NONE):
        told = "fresh"
    asked = None if fresh is None else 1.0
    remembered = asked if kept else SMALLEST_P_VALUE
    everyone = len(seen.releases.in_all)
    return FoundNoise(told, fresh, remembered, reused, share, None, everyone)


def _tested(changed: list[BoolArray], strata: IndexArray, rows: BoolArray) -> float | None:
    return association_p_value(changed[0][rows], changed[1][rows], strata[rows])


def _by_place(
    seen: Answers, pair: tuple[int, int], flips: list[BoolArray]
) -> Iterator[float | None]:
    """Yield tests of rows at the same place of two files that are of different people."""
    owners = [_owners(seen, place) for place in pair]
    n = min(map(len, owners))
    one, two = owners[0][:n], owners[1][:n]
    rows = np.flatnonzero((one != two) & (one >= 0) & (two >= 0))
    if not len(rows):
        return
    # Of two people who changed places one row counts: remembered noise is the same in both.
    low, high = np.minimum(one, two)[rows], np.maximum(one, two)[rows]
    rows = rows[np.unique(low * len(seen.releases.rows) + high, return_index=True)[1]]
    contexts = [seen.contexts[place] for place in pair]
    k, truth = len(seen.releases.classes), [c.truth[rows].astype(np.int64) for c in contexts]
    changed = [flips[place][rows] for place in pair]
    named = [
        np.array([seen.releases.classes.index(c) for c in one.release.classes])[codes]
        for one, codes in zip(contexts, truth, strict=True)
    ]
    alike = named[0] == named[1]
    for part in (alike, ~alike):
        yield _tested(changed, named[0] * k + named[1], part)


def _owners(seen: Answers, place: int) -> IndexArray:
    """Return whose each row of a release is, int64 of shape (n,); −1 where that is not known."""
    rows = seen.releases.rows[:, place]
    people = np.flatnonzero(rows >= 0)
    owners = np.full(len(seen.contexts[place].release), -1, dtype=np.int64)
    owners[rows[people]] = people
    return owners


def _share(seen: Answers) -> tuple[float, float, float] | None:
    """Return the mean share of answers given twice over neighbouring releases, with bounds."""
    matrices, found = seen.matrices, []
    if matrices is None:
        return None
    for one, two in seen.neighbours:
        people = seen.releases.in_both(one, two)
        labels = seen.releases.truth(one, people)
        people = people[labels == seen.releases.truth(two, people)]
        sizes = np.bincount(seen.releases.truth(one, people), minlength=len(matrices[one]))
        expected = fresh_agreement(matrices[one], matrices[two], sizes) if len(people) else 1.0
        if expected > 1 - 1e-9:
            return None
        answers = [seen.releases.released(place, people) for place in (one, two)]
        same = int(np.sum(answers[0] == answers[1]))
        level = seen.alpha / len(seen.neighbours)
        found.append(agreement_share(same, len(people), expected, level))
    value, low, high = np.mean(found, axis=0)
    return float(value), float(low), float(high)


def _without_truth(seen: Answers) -> FoundNoise:
    matrices, people = seen.matrices, len(seen.releases.in_all)
    if matrices is None:
        return FoundNoise("unclear", None, None, None, None, None, people)
    fresh, remembered, lows, least = [], [], [], []
    for one, two in seen.pairs:
        counts, channels = _counts(seen, one, two), (matrices[one], matrices[two])
        if counts.sum() < _FEWEST:
            continue
        fresh.append(fresh_p_value(counts, *channels))
        if (one, two) not in seen.neighbours:
            continue
        level = seen.alpha / len(seen.neighbours)
        if seen.alike:
            remembered.append(remembered_p_value(counts, *channels))
        agreeing, total = int(np.trace(counts)), int(counts.sum())
        lows.append(remembered_share_lower(agreeing, total, *channels, level))
        mixtures = fresh_mixture(*channels), remembered_mixture(*channels)
        least.append([least_changed(counts, mixture, level) for mixture in mixtures])
    if not least:
        return FoundNoise("unclear", _smallest(fresh), None, None, None, None, people)
    low = float(np.mean(lows))
    smallest, alpha, told = _smallest(fresh), min(seen.alpha, _CLEAR), _told_by(least)
    if smallest is not None and smallest <= alpha:
        told = "remembered" if low > 0 else "dependent"
    share = (low, low, 1.0) if low > 0 else None
    needed = least[0]
    known = None if None in needed else (float(needed[0] or 0.0), float(needed[1] or 0.0))
    return FoundNoise(told, smallest, _smallest(remembered), None, share, known, people)


def _told_by(least: list[list[float | None]]) -> Told:
    """Return "fresh" where remembered noise would need many more labels to have changed."""
    for fresh, remembered in least:
        if fresh is None or remembered is None or remembered - fresh < _CLEARLY_MORE:
            return "unclear"
    return "fresh"


def _counts(seen: Answers, one: int, two: int) -> IndexArray:
    people, m = seen.releases.in_both(one, two), len(seen.releases.outputs)
    codes = seen.releases.released(one, people).astype(np.int64) * m
    codes += seen.releases.released(two, people)
    return np.asarray(np.bincount(codes, minlength=m * m).reshape(m, m).astype(np.int64))


def _smallest(tests: Sequence[float | None]) -> float | None:
    """Return the smallest p-value by Bonferroni's correction, None where nothing was tested."""
    known = [p for p in tests if p is not None]
    return min(1.0, len(known) * min(known)) if known else None
