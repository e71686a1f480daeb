"""The event that distinguishes two inputs best, chosen on a sample."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ldpaudit.commands.black_box.estimators.outputs import OutputTable
from ldpaudit.commands.black_box.estimators.scores import Score, fit_boosted, fit_histograms
from ldpaudit.randomness import integer_seed
from ldpaudit.release import FloatArray

if TYPE_CHECKING:
    from ldpaudit.estimators.epsilon.guesses import GuessCounts

_THRESHOLDS = 64
_DOUBT = 3.5
"""Standard errors of the choosing sample by which an event must be better."""
_FEW_VALUES = 16
_MARGIN = 0.05
"""Nats by which boosted trees must be better than counting: they cost more to apply."""


@dataclass(frozen=True, eq=False)
class Event:
    """A rule that guesses which of two inputs an output came from.

    Attributes
    ----------
    score : Score
    low, high : float
        Guess the first input where score ≥ high, the second where score ≤ low, else abstain.
    """

    score: Score
    low: float
    high: float

    @property
    def sides(self) -> int:
        """How many of the two inputs are ever guessed."""
        return int(math.isfinite(self.low)) + int(math.isfinite(self.high))

    def counts(self, table: OutputTable) -> tuple[int, int]:
        """Return how often the first and the second input are guessed."""
        if len(table) == 0:
            return 0, 0
        scores = self.score.of(table)
        return int((scores >= self.high).sum()), int((scores <= self.low).sum())

    def describe(self) -> dict[str, Any]:
        """Return the rule as JSON."""
        return self.score.describe() | {
            "first_where_score_at_least": self.high if math.isfinite(self.high) else None,
            "second_where_score_at_most": self.low if math.isfinite(self.low) else None,
        }


@dataclass(frozen=True)
class Goal:
    """The test that an event is chosen for.

    ``candidates`` fresh outputs, the one-sided error probability ``alpha``, and the hypothesis' δ.
    """

    candidates: int
    alpha: float
    delta: float = 0.0


@dataclass(frozen=True, eq=False)
class PairChoice:
    """The best event found for a pair of inputs.

    Attributes
    ----------
    first, second : int
        Which inputs.
    event : Event
    counts : GuessCounts
        On the sample on which thresholds were chosen: no bound may rest on them.
    expected : float
        Roughly the bound to expect of fresh candidates, in nats; may be negative.
    """

    first: int
    second: int
    event: Event
    counts: "GuessCounts"
    expected: float


def choose_events(
    tables: Sequence[OutputTable], goal: Goal, rng: np.random.Generator
) -> list[PairChoice]:
    """Choose an event for every pair of inputs, the most promising pair first.

    Parameters
    ----------
    tables : sequence of arrays of shape (n, d)
        Outputs of each of k ≥ 2 inputs; scores are fitted on the first half of each and
        thresholds chosen on the second.
    goal : Goal
    rng : numpy.random.Generator
        For the boosted trees.
    """
    fitting = [table[: len(table) // 2] for table in tables]
    histograms = fit_histograms(fitting)
    choices = []
    for first, second in combinations(range(len(tables)), 2):
        scores = [histogram.score(first, second) for histogram in histograms]
        options = [_choice(score, tables, first, second, goal) for score in scores]
        choices.append(max(options, key=lambda option: option.expected))
    choices.sort(key=lambda option: -option.expected)
    best = choices[0]
    boosted = fit_boosted(fitting[best.first], fitting[best.second], integer_seed(rng))
    if boosted is not None:
        option = _choice(boosted, tables, best.first, best.second, goal)
        if option.expected > best.expected + _MARGIN:
            choices[0] = option
    return choices


def delta_event(choice: PairChoice, tables: Sequence[OutputTable], epsilon: float) -> Event:
    """Return the event of the same score with the largest excess (δ) at a given ε.

    Both guesses where the estimated log ratio is at least ε: the hockey-stick set.
    """
    halves = [tables[i][len(tables[i]) // 2 :] for i in (choice.first, choice.second)]
    scores = [choice.event.score.of(half) for half in halves]
    grid = _Grid.of(*scores)
    right, wrong = grid.sums()
    excess = (right - math.exp(epsilon) * wrong) / sum(map(len, scores)) * 2 / grid.sides()
    return grid.event(choice.event.score, np.where(grid.allowed(), excess, -np.inf))[0]


def _choice(
    score: Score, tables: Sequence[OutputTable], first: int, second: int, goal: Goal
) -> PairChoice:
    """Choose thresholds on the second half; on all where a score has too few values to overfit."""
    scores = [score.of(tables[i][len(tables[i]) // 2 :]) for i in (first, second)]
    if len(np.unique(np.concatenate(scores))) <= _FEW_VALUES:
        scores = [score.of(tables[i]) for i in (first, second)]
    grid = _Grid.of(scores[0], scores[1])
    right, wrong = grid.sums()
    n = len(scores[0]) + len(scores[1])
    expected = np.where(grid.allowed(), _expected(right, wrong, grid.sides(), n, goal), -np.inf)
    event, place = grid.event(score, expected)
    # The processes that draw need no scipy.stats, which takes longer to import than all else.
    from ldpaudit.estimators.epsilon.guesses import GuessCounts

    counts = GuessCounts(n, int(right[place]), int(wrong[place]), event.sides)
    return PairChoice(first, second, event, counts, float(expected[place]))


def _expected(
    right: FloatArray, wrong: FloatArray, sides: FloatArray, n: int, goal: Goal
) -> FloatArray:
    """Return the bound to expect, less an allowance for choosing on this sample."""
    from scipy.special import ndtri

    a, b = right + 0.5, wrong + 0.5
    room = np.maximum(a - goal.delta * sides / 2 * n, 0.5)
    error = np.sqrt(a / room**2 + 1 / b)
    spread = -ndtri(goal.alpha) * math.sqrt(n / goal.candidates) + _DOUBT
    return np.asarray(np.log(room / b) - spread * error)


@dataclass(frozen=True, eq=False)
class _Grid:
    """Counts of guesses at every pair of thresholds.

    ``highs`` and ``lows`` are thresholds in increasing order; ``first`` and ``second`` are right
    and wrong guesses of the first input at each of ``highs`` (shape (2, t + 1), the last one 0:
    never guessed), and of the second input at each of ``lows``.
    """

    highs: FloatArray
    lows: FloatArray
    first: FloatArray
    second: FloatArray

    @classmethod
    def of(cls, one: FloatArray, two: FloatArray) -> "_Grid":
        one, two = np.sort(one), np.sort(two)
        values = np.unique(np.concatenate([one, two]))
        if len(values) > _THRESHOLDS:
            pooled = np.sort(np.concatenate([one, two]))
            shares = np.linspace(0, 1, _THRESHOLDS)
            tails = np.geomspace(2e-4, 0.02, 12)
            shares = np.unique(np.concatenate([shares, tails, 1 - tails]))
            values = np.unique(pooled[(shares * (len(pooled) - 1)).round().astype(int)])
        above = [len(s) - np.searchsorted(s, values, side="left") for s in (one, two)]
        below = [np.searchsorted(s, values, side="right") for s in (two, one)]
        return cls(
            np.append(values, np.inf),
            np.append(values, -np.inf),
            np.array([np.append(side, 0) for side in above], dtype=np.float64),
            np.array([np.append(side, 0) for side in below], dtype=np.float64),
        )

    def sums(self) -> tuple[FloatArray, FloatArray]:
        """Return right and wrong guesses, float64 of shape (highs, lows)."""
        right, wrong = self.first[:, :, None] + self.second[:, None, :]
        return right, wrong

    def sides(self) -> FloatArray:
        """Return how many inputs are ever guessed, at least 1 (both thresholds infinite: none)."""
        both = np.isfinite(self.highs)[:, None].astype(float) + np.isfinite(self.lows)
        return np.asarray(np.maximum(both, 1.0))

    def allowed(self) -> Any:
        """Return where the two guesses do not overlap and one of them is made."""
        return (self.highs[:, None] > self.lows) & (
            np.isfinite(self.highs)[:, None] | np.isfinite(self.lows)
        )

    def event(self, score: Score, worth: FloatArray) -> tuple[Event, tuple[int, int]]:
        """Return the event of the largest worth, and its place in the grid."""
        high, low = np.unravel_index(int(np.argmax(worth)), worth.shape)
        event = Event(score, float(self.lows[low]), float(self.highs[high]))
        return event, (int(high), int(low))
