"""Row-wise differences, b less a, of the scores of attacks on two releases of the same rows."""

import numpy as np

from ldpaudit.arrays import BoolArray, FloatArray, IndexArray
from ldpaudit.audits.held_out_guesses import NOT_ASKED, HeldOutGuesses, Outcomes
from ldpaudit.estimators.intervals.paired import Folds

REFERENCE = "features-only"
"""The reference of advantages: a guess from each release's features alone."""


def accuracy_folds(a: HeldOutGuesses, name_a: str, b: HeldOutGuesses, name_b: str) -> Folds:
    """Return b's right guesses less a's on the rows that both attacks were asked about."""
    ours, theirs = a.outcomes[name_a], b.outcomes[name_b]
    rows = _halves(a, _asked(ours, theirs))
    parts = tuple(_less(theirs, ours, half) for half in rows)
    return Folds(parts)


def advantage_folds(a: HeldOutGuesses, name_a: str, b: HeldOutGuesses, name_b: str) -> Folds:
    """Return b's advantage over its features alone less a's, between −2 and 2 on each row."""
    ours, theirs = a.outcomes[name_a], b.outcomes[name_b]
    alone = a.outcomes[REFERENCE], b.outcomes[REFERENCE]
    rows = _halves(a, _asked(ours, theirs, *alone))
    gains_a = [_less(ours, alone[0], half) for half in rows]
    gains_b = [_less(theirs, alone[1], half) for half in rows]
    parts = tuple(y - x for x, y in zip(gains_a, gains_b, strict=True))
    return Folds(parts, reach=2.0)


def number_folds(
    a: HeldOutGuesses, key_a: str, b: HeldOutGuesses, key_b: str, reach: float
) -> Folds:
    """Return b's value of a measure of numeric guesses less a's, row by row.

    Keys are ``"<attack>.<measure>"``; no difference exceeds ``reach``.
    """
    ours, theirs = a.values[key_a], b.values[key_b]
    rows = _halves(a, np.isfinite(ours) & np.isfinite(theirs))
    parts = tuple(theirs[half] - ours[half] for half in rows)
    return Folds(parts, reach)


def mirrored(folds: Folds) -> Folds:
    """Return the differences with the other sign."""
    return Folds(tuple(-p for p in folds.parts), folds.reach)


def _asked(*outcomes: Outcomes) -> BoolArray:
    return np.asarray(np.all([each != NOT_ASKED for each in outcomes], axis=0))


def _halves(guesses: HeldOutGuesses, asked: BoolArray) -> list[IndexArray]:
    return [np.flatnonzero(asked & (guesses.halves == half)) for half in (0, 1)]


def _less(theirs: Outcomes, ours: Outcomes, rows: IndexArray) -> FloatArray:
    return theirs[rows].astype(np.float64) - ours[rows].astype(np.float64)
