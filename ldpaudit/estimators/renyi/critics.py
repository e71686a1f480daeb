"""Critics for Rényi divergences: a guess of log dP/dQ, scaled and cut as tuning rows advise.

The relative variance of e^{αφ} grows like e^{α²δ²} for Gaussians a distance δ apart, so with n rows
the best guess of φ does not give the best bound: a flatter and lower one does.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import ndtri

from ldpaudit.errors import InputError
from ldpaudit.estimators.renyi.cells import CellMap
from ldpaudit.release import FloatArray

Form = Literal["donsker-varadhan", "tangent"]

_SCALES = (1.0, 0.9, 0.8, 0.65, 0.5, 0.3)
_CLIPS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 12.0)
_MARGIN = 1.85
"""Standard errors between a mean and its bound at 95 %."""
_LOWER, _UPPER = -1.06 * float(ndtri(0.02)), -1.06 * float(ndtri(0.03))
_TANGENT_UP_TO = 1.5
"""Above this the tangent's promise is not believed: where φ misjudges how often Q's far rows come
it loses the error itself, the other form only its logarithm."""
_RANGE_COST = 3.0
"""What the possibility of one far value costs a bound, in units of that value over n."""


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
    form: Form
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
    best: list[ClippedCritic | None] = [None] * len(orders)
    pooled = _Pooled.of(guess)
    for scale in scales:
        for clip in clips:
            for position, order in enumerate(orders):
                for critic in _candidates(mapped, guess, pooled, order, scale, clip, n_p, n_q):
                    held = best[position]
                    if held is None or critic.foreseen > held.foreseen:
                        best[position] = critic
    return [critic for critic in best if critic is not None]


@dataclass(frozen=True)
class _Pooled:
    """The rows of both sides as one sample of a mixture, weighted back to P and to Q.

    Where Q has few rows P has many: the weights trust the guess, and in turn the mean of e^{αφ}
    has the variance that it has under P.
    """

    guess: FloatArray
    to_p: FloatArray
    to_q: FloatArray

    @classmethod
    def of(cls, guess: Scores) -> "_Pooled":
        both = np.concatenate([guess.p, guess.q])
        share = len(guess.p) / len(both)
        ratio = np.exp(np.clip(both, -30, 30))
        below = share * ratio + 1 - share
        to_p, to_q = ratio / below, 1 / below
        return cls(both, to_p / to_p.sum(), to_q / to_q.sum())


@dataclass(frozen=True)
class _Moments:
    """Means and variances of e^{(α−1)φ} under P and of e^{αφ} under Q."""

    p: float
    p_var: float
    q: float
    q_var: float

    @classmethod
    def of_samples(cls, p: FloatArray, q: FloatArray) -> "_Moments":
        return cls(float(p.mean()), float(p.var()), float(q.mean()), float(q.var()))

    @classmethod
    def of_pooled(cls, pooled: _Pooled, p: FloatArray, q: FloatArray) -> "_Moments":
        mean_p, mean_q = float(pooled.to_p @ p), float(pooled.to_q @ q)
        var_p = float(pooled.to_p @ p**2) - mean_p**2
        var_q = float(pooled.to_q @ q**2) - mean_q**2
        return cls(mean_p, max(var_p, 0.0), mean_q, max(var_q, 0.0))

    def promise(
        self, form: Form, order: float, shift: float, top: float, n_p: int, n_q: int
    ) -> float:
        """Return the bound at 95 % that these moments give on n_p and n_q rows."""
        far = _RANGE_COST * math.exp(order * top) / n_q
        if form == "donsker-varadhan":
            low = self.p - _LOWER * math.sqrt(self.p_var / n_p)
            high = self.q + _UPPER * math.sqrt(self.q_var / n_q) + far
            if low <= 0:
                return 0.0
            return order / (order - 1) * math.log(low) - math.log(high)
        a, b = order * math.exp((order - 1) * shift), (order - 1) * math.exp(order * shift)
        mean = a * self.p - b * self.q
        error = math.sqrt(a**2 * self.p_var / n_p + b**2 * self.q_var / n_q)
        low = mean - _MARGIN * error - b * far
        return math.log(low) / (order - 1) if low > 0 else 0.0


def _candidates(
    mapped: CellMap | None,
    guess: Scores,
    pooled: _Pooled,
    order: float,
    scale: float,
    clip: float,
    n_p: int,
    n_q: int,
) -> list[ClippedCritic]:
    """Return both forms at one setting; each promises the worse of what two estimates say.

    The samples' own moments miss what is rare, the pooled ones trust the guess.
    """
    floor = -clip - 12.0
    cut = np.clip(scale * pooled.guess, floor, clip)
    first, second = np.exp((order - 1) * cut), np.exp(order * cut)
    seen = _Moments.of_samples(first[: len(guess.p)], second[len(guess.p) :])
    trusted = _Moments.of_pooled(pooled, first, second)
    # c = A/B maximises α c^{α−1} A − (α − 1) c^α B.
    shift = math.log(trusted.p / trusted.q)
    forms = []
    for form, moved in (("donsker-varadhan", 0.0), ("tangent", shift)):
        promises = [
            m.promise(form, order, moved, clip, n_p, n_q)  # type: ignore[arg-type]
            for m in (seen, trusted)
        ]
        if form == "tangent" and min(promises) > _TANGENT_UP_TO:
            continue
        critic = ClippedCritic(order, form, mapped, scale, clip, moved, min(promises))  # type: ignore[arg-type]
        forms.append(critic)
    return forms
