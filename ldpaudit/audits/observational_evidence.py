"""Certified evidence about a channel that may use the features: equal features, and canaries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.attacks.feature_cells import Cells
from ldpaudit.audits.interface import AuditContext
from ldpaudit.errors import InputError
from ldpaudit.estimators.epsilon_bounds import smallest_positive
from ldpaudit.estimators.matched_rows import RATIOS, MatchedCounts, match, matched_bound
from ldpaudit.estimators.poisson_binomial import ShiftedCoins, shift_lower
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray, Release

_FEWEST_MATCHES: Final = 20
_FEWEST_CANARIES: Final = 20
_INCREDIBLE: Final = 1e-9
"""Canary labels less probable than this do not have the stated probabilities."""


@dataclass(frozen=True)
class Certificate:
    """A certified lower bound of ε, in nats, at level 1 − alpha.

    Attributes
    ----------
    epsilon : float
    n : int
        The rows behind it.
    smallest_cell : int
    words : str
        How it was found.
    by_construction : bool
        Whether the re-drawn label's law was set by the auditor.
    """

    epsilon: float
    n: int
    smallest_cell: int
    words: str
    by_construction: bool


@dataclass(frozen=True)
class MatchedEvidence:
    """Counts among rows with equal features."""

    counts: Sequence[MatchedCounts]
    name: str = "cells"

    def bound(self, alpha: float) -> Certificate:
        """Return the bound at a one-sided error probability."""
        found = matched_bound(self.counts, alpha)
        words = (
            f"rows with equal features and other true labels, {found.method} bound; corrected for "
            f"{len(self.counts) + 1} bounds"
        )
        return Certificate(found.epsilon, found.n, found.smallest_cell, words, False)


@dataclass(frozen=True)
class CanaryEvidence:
    """Guesses of labels that the auditor drew.

    Attributes
    ----------
    priors : float64 array of shape (c,)
        The probability with which each guessed label was drawn.
    correct : int
        How many of the guesses are the label that was drawn.
    """

    priors: FloatArray
    correct: int
    name: str = "canaries"

    def bound(self, alpha: float) -> Certificate:
        """Return the bound at a one-sided error probability."""
        epsilon = shift_lower(self.priors, self.correct, alpha)
        n = len(self.priors)
        words = (
            "canaries: each guess from the released label is right with a probability of log-odds "
            "at most ε above those with which its label was drawn (Poisson-binomial tail)"
        )
        cell = smallest_positive(self.correct, n - self.correct)
        return Certificate(epsilon, n, cell, words, True)


def matched_evidence(context: AuditContext) -> MatchedEvidence | None:
    """Return the counts among rows with equal features, None with fewer than 20 matches."""
    release, rng = context.release, context.rng("observational", "matching")
    table, rows = guessed_events(context)
    assert release.truth is not None
    cells = Cells.fit(release.features.take(rows)).members.astype(np.int64)
    truth, released = release.truth[rows], release.released[rows]
    k, counts = len(release.classes), []
    for ratio in RATIOS:
        matching = match(cells, truth, k, ratio, rng)
        event = table[matching.targets[cells], released]
        counts.append(MatchedCounts.of(matching, event))
    if counts[0].cases < _FEWEST_MATCHES:
        return None
    return MatchedEvidence(tuple(counts))


def canary_evidence(context: AuditContext) -> CanaryEvidence | None:
    """Return the guesses of the canaries' labels, None where there are no canaries.

    Raises
    ------
    InputError
        If there are too few, or their labels cannot have been drawn as stated.
    """
    release = context.release
    if release.canaries is None:
        return None
    table, rows = guessed_events(context)
    assert release.truth is not None
    drawn = rows[np.isfinite(release.canaries[rows]).all(axis=1)]
    _check_canaries(release, np.flatnonzero(np.isfinite(release.canaries).all(axis=1)))
    guess = table_guess(table, context)[release.released[drawn]]
    return CanaryEvidence(
        release.canaries[drawn, guess], int((guess == release.truth[drawn]).sum())
    )


def _check_canaries(release: Release, drawn: IndexArray) -> None:
    assert release.truth is not None
    assert release.canaries is not None
    if len(drawn) < _FEWEST_CANARIES:
        raise InputError(
            f"There must be at least {_FEWEST_CANARIES} canaries with probabilities for every "
            f"class; {len(drawn)} rows have them."
        )
    own = release.canaries[drawn, release.truth[drawn]]
    never = int((own <= 0).sum())
    if never:
        raise InputError(
            "The canaries' labels must be ones that their probabilities allow (the proxy must "
            f"overlap the release); {never} of {len(drawn)} have probability 0."
        )
    likeliest = release.canaries[drawn].argmax(axis=1)
    chance = release.canaries[drawn, likeliest]
    hits = int((likeliest == release.truth[drawn]).sum())
    tails = (
        ShiftedCoins.of(chance, up=True).at_least(hits, 0.0),
        ShiftedCoins.of(chance, up=False).at_most(hits, 0.0),
    )
    if min(tails) < _INCREDIBLE:
        raise InputError(
            "The canaries' labels must have been drawn with the probabilities stated; those of "
            f"{len(drawn)} canaries cannot have been (p < 1e-9)."
        )


def guessed_events(context: AuditContext) -> tuple[BoolArray, IndexArray]:
    """Return which outputs speak for which label, and the rows on which that may be tested.

    An output that is a class speaks for it. Other outputs are learnt on one half of the rows, and
    only the other half is tested.

    Returns
    -------
    bool array of shape (k, m), int64 array of shape (r,)
    """
    return context.once("observational.events", lambda: _events(context))


def _events(context: AuditContext) -> tuple[BoolArray, IndexArray]:
    release = context.release
    if release.outputs == release.classes:
        return np.eye(len(release.classes), dtype=bool), np.arange(len(release))
    learnt = np.flatnonzero(context.halves() == 0)
    table = _learnt_channel(release, learnt)
    k = len(table)
    others = (table.sum(axis=0) - table) / (k - 1)
    return table > others, np.flatnonzero(context.halves() == 1)


def _learnt_channel(release: Release, rows: IndexArray) -> FloatArray:
    assert release.truth is not None
    k, m = len(release.classes), len(release.outputs)
    flat = release.truth[rows].astype(np.int64) * m + release.released[rows]
    counts = np.bincount(flat, minlength=k * m).reshape(k, m) + 0.5
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def table_guess(table: BoolArray, context: AuditContext) -> IntArray:
    """Return for each output the label that it speaks for most, int32 of shape (m,)."""
    release = context.release
    if release.outputs == release.classes:
        return np.arange(len(release.classes), dtype=np.int32)
    channel = _learnt_channel(release, np.flatnonzero(context.halves() == 0))
    lift = np.where(table, channel / channel.mean(axis=0), 0.0)
    return np.asarray(lift.argmax(axis=0), dtype=np.int32)
