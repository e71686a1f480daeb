"""Rényi divergences of order α > 1, bounded from below from samples.

For any fixed bounded φ,

    D_α(P‖Q) ≥ α/(α − 1) log E_P[e^{(α−1)φ}] − log E_Q[e^{αφ}]              (Donsker–Varadhan),

with equality at φ = log dP/dQ. A bound needs one mean from below and one from above. With t = e^φ,
r^α ≥ α r t^{α−1} − (α − 1) t^α gives the same in one mean,

    exp((α − 1) D_α(P‖Q)) ≥ α E_P[t^{α−1}] − (α − 1) E_Q[t^α]                (tangent),

so that one confidence bound on the mean of a bounded variable of independent groups of rows
suffices. At the best scale of t both right sides agree; the tangent spends its whole error
probability at once and pays for the scale, which was fixed on other rows. Which form, which order
α' ≤ α (D_α grows with α) and how φ is scaled and cut are all chosen on tuning rows, so nothing is
corrected for. The relative variance of e^{αφ} grows like e^{α²δ²} for Gaussians a distance δ apart,
so with n rows the best guess of φ does not give the best bound: a flatter and lower one does.

References
----------
Birrell et al. (2021), Variational representations and neural network estimation of Rényi
divergences, Theorem 3.1; Nguyen, Wainwright & Jordan (2010), Lemma 1; van Erven & Harremoës (2014),
Rényi divergence and Kullback–Leibler divergence, Theorems 3, 12 and 13.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.special import ndtri

from ldpaudit.error_budget import RENYI
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.intervals.bounded_mean import mean_lower, mean_upper
from ldpaudit.release import FloatArray

# The orders α that audits look at.
AUDITED_ORDERS = (1.1, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
TUNING_SHARE = 0.15
FEWEST_ROWS = 50  # held-out rows that each side must have
SCALES = (1.0, 0.9, 0.8, 0.65, 0.5, 0.3)
CLIPS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 12.0)
# Above this order the bound of a smaller one is taken: one far row would decide its own.
_LARGEST = 10.0
_FAR = 25.0


@dataclass(frozen=True)
class Scores:
    """Guesses of log dP/dQ, float64 arrays of shapes (n_p,) and (n_q,): rows of P and of Q."""

    # Raise InputError if one is not finite: what cannot be compared would count as "no difference".

    p: FloatArray
    q: FloatArray

    def __post_init__(self) -> None:
        odd = sum(int((~np.isfinite(side)).sum()) for side in (self.p, self.q))
        if odd:
            raise InputError(
                f"Guesses of the log ratio must be finite; {odd} are not. Cut them first."
            )


@dataclass(frozen=True)
class CellMap:
    """The log ratio of counts in cells of the guess, shrunk towards the cell's mean guess."""

    # With a fixed table the variational bound is a bound on the divergence between the
    # distributions over cells, with all cells counted jointly; grouping only loses divergence.

    edges: FloatArray
    table: FloatArray

    @classmethod
    def fit(cls, guess: Scores) -> "CellMap":
        """Learn quantile cells and their log ratios; the mean guess counts as twenty rows."""
        n_p, n_q, both = len(guess.p), len(guess.q), np.concatenate([guess.p, guess.q])
        bins = int(np.clip(2 * min(n_p, n_q) // 60, 2, 60))
        edges = np.unique(np.quantile(both, np.arange(1, bins) / bins))
        cells, size = np.searchsorted(edges, both, side="right"), len(edges) + 1
        mean = np.bincount(cells, both, size) / np.maximum(np.bincount(cells, minlength=size), 1)
        odds = np.exp(np.clip(mean, -20, 20)) * n_p / n_q
        prior = odds / (1 + odds)
        hits = np.bincount(cells[:n_p], minlength=size) + 20.0 * prior
        misses = np.bincount(cells[n_p:], minlength=size) + 20.0 * (1 - prior)
        return cls(edges, np.asarray(np.log(hits / n_p) - np.log(misses / n_q)))

    def __call__(self, guess: FloatArray) -> FloatArray:
        """Return the table's entry for each guess, float64 of the same shape."""
        return np.asarray(self.table[np.searchsorted(self.edges, guess, side="right")])


@dataclass(frozen=True)
class ClippedCritic:
    """φ = min(scale · map(guess), clip), kept above −clip − 12, plus a shift for the tangent.

    The floor is so low that it costs nothing, so high that every power is finite.
    ``order``: the order α' for which it is taken. ``tangent``: its form; else Donsker–Varadhan.
    ``map``: replaces the guess first; None keeps it. ``scale``, ``clip``, ``shift``: fixed before
    the rows that the bound is taken on. ``foreseen``: the bound at 95 % that tuning rows promise,
    in nats.
    """

    order: float
    tangent: bool
    map: CellMap | None
    scale: float
    clip: float
    shift: float
    foreseen: float

    def powers(self, scores: Scores) -> tuple[FloatArray, FloatArray]:
        """Return e^{(α−1)φ} of the rows of P and e^{αφ} of those of Q."""
        of_p, of_q = (side if self.map is None else self.map(side) for side in (scores.p, scores.q))
        cut = (np.clip(self.scale * g, -self.clip - 12.0, self.clip) for g in (of_p, of_q))
        phi_p, phi_q = (one + self.shift for one in cut)
        return np.exp((self.order - 1) * phi_p), np.exp(self.order * phi_q)

    def ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return (least, largest) of either power over all possible rows."""
        low, high = -self.clip - 12.0 + self.shift, self.clip + self.shift
        below = self.order - 1
        return (
            (math.exp(below * low), math.exp(below * high)),
            (math.exp(self.order * low), math.exp(self.order * high)),
        )


def screened_promise(tuning: Scores, n_p: int, n_q: int, order: float) -> float:
    """Return about the bound that :func:`choose_critics` promises, from few settings: to rank."""
    settings = list(product(SCALES[::3], CLIPS[1::3]))
    return _best_of(None, tuning, n_p, n_q, (order,), settings)[0].foreseen


def choose_critics(
    tuning: Scores, n_p: int, n_q: int, orders: tuple[float, ...]
) -> list[ClippedCritic]:
    """Return for each order the critic that promises the largest bound on n_p and n_q other rows.

    Critics of two kinds compete: the guess itself, and a table of log ratios over cells of the
    guess. The table is learnt on one half of the tuning rows and judged on the other, then learnt
    on all of them.
    """
    one, other = (Scores(tuning.p[half::2], tuning.q[half::2]) for half in (0, 1))
    settings = list(product(SCALES, CLIPS))
    plain = _best_of(None, tuning, n_p, n_q, orders, settings)
    judged = _best_of(CellMap.fit(one), other, n_p, n_q, orders, settings)
    whole = CellMap.fit(tuning)
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
    settings: Sequence[tuple[float, float]],
) -> list[ClippedCritic]:
    guess = tuning if mapped is None else Scores(mapped(tuning.p), mapped(tuning.q))
    found, critics = promises(guess, n_p, n_q, np.array(orders), settings), []
    for position, order in enumerate(orders):
        best, tangent = divmod(int(found[:, :2, position].argmax()), 2)
        foreseen, shift = found[best, tangent, position], found[best, 2, position] * tangent
        setting = (*settings[best], float(shift), float(foreseen))
        critics.append(ClippedCritic(order, bool(tangent), mapped, *setting))
    return critics


def promises(
    guess: Scores,
    n_p: int,
    n_q: int,
    orders: FloatArray,
    settings: Sequence[tuple[float, float]],
) -> FloatArray:
    """Return what both forms promise on n_p and n_q rows, and the tangent's shift, (s, 3, o).

    For each (scale, clip) and order, a form promises the worse of what two estimates say. The
    samples' own moments miss what is rare: where Q has few rows P has many. As one sample of a
    mixture, weighted back to P and to Q, the rows trust the guess, and in turn the mean of e^{αφ}
    has the variance that it has under P. −∞ where a promise is not believed.
    """
    both = np.concatenate([guess.p, guess.q])
    of_p, share = np.arange(len(both)) < len(guess.p), len(guess.p) / len(both)
    ratio = np.exp(np.clip(both, -30, 30))
    weights = np.array([[of_p, ~of_p], [ratio, np.ones(len(both))]])
    weights[1] /= share * ratio + 1 - share
    weights /= weights.sum(axis=2, keepdims=True)
    # Standard errors between a mean and its bound at 95 %, alone and of either of two.
    margin, lower, upper = 1.85, -1.06 * float(ndtri(0.02)), -1.06 * float(ndtri(0.03))
    below, found = orders - 1, []
    for scale, clip in settings:
        cut = np.clip(scale * both, -clip - 12.0, clip)
        powers = np.exp(np.outer(below, cut))
        p, var_p = _moments(powers, weights[:, 0])
        q, var_q = _moments(powers * np.exp(cut), weights[:, 1])
        # What the possibility of one far value costs: three times that value over n.
        far = 3.0 * np.exp(orders * clip) / n_q
        low, high = p - lower * np.sqrt(var_p / n_p), q + upper * np.sqrt(var_q / n_q) + far
        plain = np.where(low > 0, orders / below * _log(low) - np.log(high), 0.0).min(axis=0)
        # c = A/B maximises α c^{α−1} A − (α − 1) c^α B.
        shift = np.log(p[1] / q[1])
        a, b = orders * np.exp(below * shift), below * np.exp(orders * shift)
        error = np.sqrt(a**2 * var_p / n_p + b**2 * var_q / n_q)
        low = a * p - b * q - margin * error - b * far
        tangent = np.where(low > 0, _log(low) / below, 0.0).min(axis=0)
        # Where φ misjudges how often Q's far rows come the tangent loses the error itself, the
        # other form only its logarithm: a large promise of it is not believed.
        found.append(np.stack([plain, np.where(tangent > 1.5, -np.inf, tangent), shift]))
    return np.array(found)


def _moments(powers: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means and variances of powers (o, n) by each of two weights (2, n), (2, o) each."""
    means, squares = weights @ powers.T, weights @ (powers**2).T
    return means, np.maximum(squares - means**2, 0.0)


def _log(values: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(values, 1e-300)))


@dataclass(frozen=True)
class RenyiBound:
    """A lower bound on D_α for one order, on rows that played no part in its choice."""

    order: float
    critic: ClippedCritic
    """With its own order α' ≤ α and its form."""
    scores: Scores
    """The rows it is bounded on."""

    def at(self, alpha: float) -> float:
        """Return the bound in nats at one-sided error probability ``alpha``; never below 0."""
        critic, order = self.critic, self.critic.order
        if critic.foreseen <= 0:
            return 0.0
        first, second = critic.powers(self.scores)
        of_p, of_q = critic.ranges()
        if not critic.tangent:
            of_second = RENYI.of(alpha, "second mean")
            low = mean_lower(first, alpha - of_second, *of_p)
            high = mean_upper(second, of_second, *of_q)
            bound = order / (order - 1) * math.log(low) - math.log(high) if low > 0 else 0.0
            return max(0.0, bound)
        # The mean of groups of a rows of P and b rows of Q.
        a, b = row_groups(len(first), len(second))
        m = min(len(first) // a, len(second) // b)
        values = order * first[: m * a].reshape(m, a).mean(axis=1)
        values -= (order - 1) * second[: m * b].reshape(m, b).mean(axis=1)
        ends = (order * p - (order - 1) * q for p, q in zip(of_p, of_q[::-1], strict=True))
        mean = mean_lower(values, alpha, *ends)
        return math.log(mean) / (order - 1) if mean > 1 else 0.0


def split_scores(
    scores: Scores, *, rng: np.random.Generator, share: float = TUNING_SHARE
) -> tuple[Scores, Scores]:
    """Return tuning rows and the others, both shuffled."""
    if min(len(scores.p), len(scores.q)) < FEWEST_ROWS:
        raise InsufficientDataError(
            f"A Rényi divergence needs at least {FEWEST_ROWS} held-out rows on each side."
        )
    sides = [side[rng.permutation(len(side))] for side in (scores.p, scores.q)]
    cuts = [max(20, int(share * len(side))) for side in sides]
    p, q = (np.split(side, [cut]) for side, cut in zip(sides, cuts, strict=True))
    return Scores(p[0], q[0]), Scores(p[1], q[1])


def bounds_on(
    tuning: Scores, test: Scores, orders: Sequence[float] = AUDITED_ORDERS
) -> tuple[RenyiBound, ...]:
    """Prepare a certified lower bound on D_α(P‖Q) for each order; each holds at its own level.

    ``test``: rows that played no part in ``tuning``.
    """
    if not all(order > 1 for order in orders):
        raise InputError("Every order alpha must be above 1.")
    allowed = tuple(sorted({min(order, _LARGEST) for order in orders}))
    critics = choose_critics(tuning, len(test.p), len(test.q), allowed)
    able = [[critic for critic in critics if critic.order <= order] for order in orders]
    best = [max(some, key=lambda critic: critic.foreseen) for some in able]
    return tuple(RenyiBound(order, one, test) for order, one in zip(orders, best, strict=True))


def row_groups(n_p: int, n_q: int) -> tuple[int, int]:
    """Return how many rows of P and of Q form a group: as few as waste less than 4 % of either."""
    fewest = min(n_p, n_q)
    for size in range(1, 41):
        groups = fewest // size
        if groups < 8:
            break
        if max(n_p % groups / n_p, n_q % groups / n_q) <= 0.04:
            return n_p // groups, n_q // groups
    groups = max(fewest // 8, 1)
    return max(n_p // groups, 1), max(n_q // groups, 1)


@dataclass(frozen=True)
class RenyiPoint:
    """Estimates of D_α in nats at one order."""

    order: float
    """α."""
    value: float
    """The estimate to report."""
    effective_rows: float
    """Rows of Q that the exponential weights e^{αφ} leave: n (E w)²/E w²."""
    supported: bool
    """Whether that is enough (30)."""


def renyi_points(scores: Scores, orders: Sequence[float]) -> tuple[RenyiPoint, ...]:
    """Return estimates for ascending orders in (1, 10] from calibrated guesses for held-out rows.

    Beyond, no number of rows that occurs supports an estimate worth having. An order is supported
    only where all smaller ones are.
    """
    if not all(1 < order <= _LARGEST for order in orders) or list(orders) != sorted(orders):
        raise InputError(f"Orders of an estimate must ascend within (1, {_LARGEST:g}].")
    if not (len(scores.p) and len(scores.q)):
        raise InsufficientDataError("An estimate of a divergence needs rows on both sides.")
    p, q = np.clip(scores.p, -_FAR, _FAR), np.clip(scores.q, -_FAR, _FAR)
    points, held = [], True
    for order in orders:
        rows = effective_rows(p, q, order)
        held = held and rows >= 30.0
        points.append(RenyiPoint(order, max(0.0, balanced_estimate(p, q, order)), rows, held))
    return tuple(points)


def calibration_error(scores: Scores, bins: int = 20) -> float:
    """Return the expected calibration error of the discriminator, in [0, 1].

    The mean over quantile bins of |share of P − mean probability of P|, both sides weighted as if
    they had equally many rows.
    """
    both, n_p, n_q = np.concatenate([scores.p, scores.q]), len(scores.p), len(scores.q)
    is_p = np.repeat([1.0, 0.0], [n_p, n_q])
    weight = np.repeat([0.5 / n_p, 0.5 / n_q], [n_p, n_q])
    chance = 1 / (1 + np.exp(-np.clip(both, -_FAR, _FAR)))
    edges = np.unique(np.quantile(both, np.arange(1, bins) / bins))
    gap = np.bincount(np.searchsorted(edges, both, side="right"), weight * (is_p - chance))
    return float(np.abs(gap).sum())


def effective_rows(p: FloatArray, q: FloatArray, order: float) -> float:
    """Return the fewer of what Q's own rows show and what P's rows say of E_Q[e^{2αφ}].

    Few rows of Q lack the largest weights and so look like many effective ones.
    """
    top = max(float(p.max()), float(q.max()))
    weights = np.exp(order * (q - q.max()))
    direct = float(weights.sum() ** 2 / np.square(weights).sum())
    first, square = (
        float(np.exp(power * (p - top)).mean()) for power in (order - 1, 2 * order - 1)
    )
    return min(direct, len(q) * first**2 / square * math.exp(-top))


def balanced_estimate(p: FloatArray, q: FloatArray, order: float) -> float:
    """Return the Donsker–Varadhan value, E_Q[e^{αφ}] beyond a cut taken as E_P[e^{(α−1)φ}] there.

    At the last of 60 cuts up to which Q's rows have a standard error of 1.2 % of the divergence.
    """
    first, second = np.exp((order - 1) * p), np.sort(np.exp(order * q))
    mean = float(first.mean())
    rough = max(math.log(mean) / (order - 1), 0.01)
    cuts = np.unique(np.quantile(q, 1 - np.geomspace(1, 1 / len(q), 60)))
    below = np.searchsorted(np.sort(q), cuts, side="right") - 1
    near, squares = (np.cumsum(second**power)[below] / len(q) for power in (1, 2))
    tail = np.append(np.cumsum(np.sort(first)[::-1])[::-1] / len(p), 0.0)
    total = near + tail[np.searchsorted(np.sort(p), cuts, side="right")]
    error = np.sqrt(np.maximum(squares - near**2, 0) / len(q)) / total
    allowed = np.flatnonzero(error <= 0.012 * rough)
    chosen = int(allowed[-1]) if len(allowed) else 0
    return order / (order - 1) * math.log(mean) - math.log(float(total[chosen]))
