"""Critics for Rényi divergences: a guess of log dP/dQ, scaled and cut as tuning rows advise.

The relative variance of e^{αφ} grows like e^{α²δ²} for Gaussians a distance δ apart, so with n rows
the best guess of φ does not give the best bound: a flatter and lower one does.
"""

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np
from scipy.special import ndtri

from ldpaudit.errors import InputError
from ldpaudit.release import FloatArray

_BIN_ROWS = 60
_MOST_BINS = 60
_TRUST = 20.0


@dataclass(frozen=True)
class CellMap:
    """The log ratio of counts in cells of the guess, shrunk towards the cell's mean guess.

    With a fixed table the variational bound is a bound on the divergence between the distributions
    over cells, with all cells counted jointly; grouping only loses divergence.
    """

    edges: FloatArray
    table: FloatArray

    @classmethod
    def fit(cls, p: FloatArray, q: FloatArray) -> "CellMap":
        """Learn quantile cells and their log ratios from guesses for rows of P and of Q."""
        both = np.concatenate([p, q])
        bins = int(np.clip(2 * min(len(p), len(q)) // _BIN_ROWS, 2, _MOST_BINS))
        edges = np.unique(np.quantile(both, np.arange(1, bins) / bins))
        cells = np.searchsorted(edges, both, side="right")
        size = np.bincount(cells, minlength=len(edges) + 1)
        mean = np.bincount(cells, both, minlength=len(edges) + 1) / np.maximum(size, 1)
        share = len(p) / len(both)
        odds = np.exp(np.clip(mean, -20, 20)) * share / (1 - share)
        prior = odds / (1 + odds)
        hits = np.bincount(cells[: len(p)], minlength=len(edges) + 1) + _TRUST * prior
        misses = np.bincount(cells[len(p) :], minlength=len(edges) + 1) + _TRUST * (1 - prior)
        table = np.log(hits / len(p)) - np.log(misses / len(q))
        return cls(np.asarray(edges), np.asarray(table))

    def __call__(self, guess: FloatArray) -> FloatArray:
        """Return the table's entry for each guess, float64 of the same shape."""
        return np.asarray(self.table[np.searchsorted(self.edges, guess, side="right")])


_Form = Literal["donsker-varadhan", "tangent"]
_FORMS: tuple[_Form, _Form] = ("donsker-varadhan", "tangent")
_SCALES = (1.0, 0.9, 0.8, 0.65, 0.5, 0.3)
_CLIPS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 12.0)
# Standard errors between a mean and its bound at 95 %.
_MARGIN = 1.85
_LOWER, _UPPER = -1.06 * float(ndtri(0.02)), -1.06 * float(ndtri(0.03))
# Above this the tangent's promise is not believed: where φ misjudges how often Q's far rows come it
# loses the error itself, the other form only its logarithm.
_TANGENT_UP_TO = 1.5
# What the possibility of one far value costs a bound, in units of that value over n.
_RANGE_COST = 3.0


@dataclass(frozen=True)
class Scores:
    """Guesses of log dP/dQ, float64 arrays of shapes (n_p,) and (n_q,): rows of P and of Q.

    Raises
    ------
    InputError
        If a guess is not finite: what cannot be compared would count as "no difference".
    """

    p: FloatArray
    q: FloatArray

    def __post_init__(self) -> None:
        odd = sum(int((~np.isfinite(side)).sum()) for side in (self.p, self.q))
        if odd:
            raise InputError(
                f"Guesses of the log ratio must be finite; {odd} are not. Cut them first."
            )


@dataclass(frozen=True)
class ClippedCritic:
    """φ = min(scale · map(guess), clip), kept above −clip − 12, plus a shift for the tangent.

    Attributes
    ----------
    order : float
        The order α' for which it is taken.
    form : {"donsker-varadhan", "tangent"}
    map : CellMap or None
        Replaces the guess first; None keeps it.
    scale, clip, shift : float
        Fixed before the rows that the bound is taken on.
    foreseen : float
        The bound at 95 % that tuning rows promise, in nats.
    """

    order: float
    form: _Form
    map: CellMap | None
    scale: float
    clip: float
    shift: float
    foreseen: float

    @property
    def floor(self) -> float:
        """The lower clip: so low that it costs nothing, so high that every power is finite."""
        return -self.clip - 12.0

    def powers(self, scores: Scores) -> tuple[FloatArray, FloatArray]:
        """Return e^{(α−1)φ} of the rows of P and e^{αφ} of those of Q."""
        cut_p = self._cut(scores.p) + self.shift
        cut_q = self._cut(scores.q) + self.shift
        return np.exp((self.order - 1) * cut_p), np.exp(self.order * cut_q)

    def ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return (least, largest) of either power over all possible rows."""
        low, high = self.floor + self.shift, self.clip + self.shift
        power = self.order - 1
        return (
            (math.exp(power * low), math.exp(power * high)),
            (math.exp(self.order * low), math.exp(self.order * high)),
        )

    def _cut(self, guess: FloatArray) -> FloatArray:
        mapped = guess if self.map is None else self.map(guess)
        return np.asarray(np.clip(self.scale * mapped, self.floor, self.clip))


def screened_promise(tuning: Scores, n_p: int, n_q: int, order: float) -> float:
    """Return about the bound that :func:`choose_critics` promises, from few settings: to rank."""
    scales, clips = _SCALES[::3], _CLIPS[1::3]
    return _best_of(None, tuning, n_p, n_q, (order,), scales, clips)[0].foreseen


def choose_critics(
    tuning: Scores, n_p: int, n_q: int, orders: tuple[float, ...]
) -> list[ClippedCritic]:
    """Return for each order the critic that promises the largest bound on n_p and n_q other rows.

    Critics of two kinds compete: the guess itself, and a table of log ratios over cells of the
    guess. The table is learnt on one half of the tuning rows and judged on the other, then learnt
    on all of them.
    """
    halves = Scores(tuning.p[::2], tuning.q[::2]), Scores(tuning.p[1::2], tuning.q[1::2])
    plain = _best_of(None, tuning, n_p, n_q, orders)
    table = CellMap.fit(halves[0].p, halves[0].q)
    judged = _best_of(table, halves[1], n_p, n_q, orders)
    whole = CellMap.fit(tuning.p, tuning.q)
    # The best of many promises on few rows promises too much: cells must promise more.
    doubt = 3 / math.sqrt(min(len(tuning.p), len(tuning.q)) / 2)
    return [
        replace(cells, map=whole) if cells.foreseen > 1.2 * guess.foreseen + doubt else guess
        for guess, cells in zip(plain, judged, strict=True)
    ]


def _best_of(
    mapped: CellMap | None,
    tuning: Scores,
    n_p: int,
    n_q: int,
    orders: tuple[float, ...],
    scales: tuple[float, ...] = _SCALES,
    clips: tuple[float, ...] = _CLIPS,
) -> list[ClippedCritic]:
    guess = tuning if mapped is None else Scores(mapped(tuning.p), mapped(tuning.q))
    trial = _Trial.of(guess, np.array(orders), n_p, n_q)
    settings = list(product(scales, clips))
    # Of shape (settings, forms, orders).
    found = np.array([trial.promises(*setting) for setting in settings])
    critics = []
    for position, order in enumerate(orders):
        best, form = divmod(int(found[:, :2, position].argmax()), 2)
        shift = float(found[best, 2, position]) if form else 0.0
        foreseen = float(found[best, form, position])
        critics.append(ClippedCritic(order, _FORMS[form], mapped, *settings[best], shift, foreseen))
    return critics


@dataclass(frozen=True, eq=False)
class _Trial:
    """Tuning rows, on which settings of critics are tried for all orders at once.

    Attributes
    ----------
    guess : float64 array of shape (n,)
        Of the rows of P, then those of Q.
    weights : float64 array of shape (2, 2, n)
        For the rows as two samples, and as one sample of a mixture: their weights under P and Q.
    orders : float64 array of shape (o,)
    n_p, n_q : int
        The rows that a bound is to be taken on.
    """

    guess: FloatArray
    weights: FloatArray
    orders: FloatArray
    n_p: int
    n_q: int

    @classmethod
    def of(cls, guess: Scores, orders: FloatArray, n_p: int, n_q: int) -> "_Trial":
        """Weigh the rows.

        Where Q has few rows P has many: as one sample of a mixture, weighted back to P and to Q,
        the weights trust the guess, and in turn the mean of e^{αφ} has the variance that it has
        under P.
        """
        both = np.concatenate([guess.p, guess.q])
        of_p = np.arange(len(both)) < len(guess.p)
        share = len(guess.p) / len(both)
        ratio = np.exp(np.clip(both, -30, 30))
        below = share * ratio + 1 - share
        weights = np.array([[of_p, ~of_p], [ratio / below, 1 / below]])
        weights /= weights.sum(axis=2, keepdims=True)
        return cls(both, weights, orders, n_p, n_q)

    def promises(self, scale: float, clip: float) -> FloatArray:
        """Return what each form promises at one setting, and the tangent's shift, shape (3, o).

        Each promises the worse of what two estimates say: the samples' own moments miss what is
        rare, the pooled ones trust the guess. −∞ where a promise is not believed.
        """
        cut = np.clip(scale * self.guess, -clip - 12.0, clip)
        powers = np.exp(np.outer(self.orders - 1, cut))
        p = _moments(powers, self.weights[:, 0])
        powers *= np.exp(cut)
        q = _moments(powers, self.weights[:, 1])
        # c = A/B maximises α c^{α−1} A − (α − 1) c^α B.
        shift = np.log(p[0, 1] / q[0, 1])
        far = _RANGE_COST * np.exp(self.orders * clip) / self.n_q
        plain = self._donsker_varadhan(p, q, far).min(axis=0)
        tangent = self._tangent(p, q, far, shift).min(axis=0)
        return np.stack([plain, np.where(tangent > _TANGENT_UP_TO, -np.inf, tangent), shift])

    def _donsker_varadhan(self, p: FloatArray, q: FloatArray, far: FloatArray) -> FloatArray:
        low = p[0] - _LOWER * np.sqrt(p[1] / self.n_p)
        high = q[0] + _UPPER * np.sqrt(q[1] / self.n_q) + far
        ratio = self.orders / (self.orders - 1)
        return np.where(low > 0, ratio * _log(low) - np.log(high), 0.0)

    def _tangent(
        self, p: FloatArray, q: FloatArray, far: FloatArray, shift: FloatArray
    ) -> FloatArray:
        power = self.orders - 1
        a, b = self.orders * np.exp(power * shift), power * np.exp(self.orders * shift)
        error = np.sqrt(a**2 * p[1] / self.n_p + b**2 * q[1] / self.n_q)
        low = a * p[0] - b * q[0] - _MARGIN * error - b * far
        return np.where(low > 0, _log(low) / power, 0.0)


def _moments(powers: FloatArray, weights: FloatArray) -> FloatArray:
    """Return means and variances of powers (o, n) by each of two weights (2, n), (2, 2, o)."""
    means, squares = weights @ powers.T, weights @ (powers**2).T
    return np.stack([means, np.maximum(squares - means**2, 0.0)])


def _log(values: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(values, 1e-300)))
