"""Noise in whole steps of a grid: its law, and the discrete Laplace and staircase mechanisms.

Both laws repeat themselves: |x| = jn + s (block j, place s < n) has the probability
e^{−jε} · block[s], up to one factor. So everything has a closed form in the n weights of a block,
and a draw needs only a table of one block: beyond it the law repeats, and no tail is cut off.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.design import numeric_traits
from ldpaudit.mechanisms.exact_sampling import BitSource, Randomness, WeightTable, bit_source
from ldpaudit.mechanisms.explicit import ExplicitChannel
from ldpaudit.mechanisms.finite import check_codes
from ldpaudit.mechanisms.interface import NumericMechanism
from ldpaudit.mechanisms.label_range import between
from ldpaudit.mechanisms.losses import Loss, loss
from ldpaudit.mechanisms.noise.ranged import SymmetricNoise
from ldpaudit.mechanisms.options import STEPS
from ldpaudit.mechanisms.parameters import check_finite, check_prior
from ldpaudit.release import FloatArray, IntArray

Int64Array = npt.NDArray[np.int64]

_DEEPEST: Final = 1 << 16
_REMAINDER_BITS: Final = 16


@dataclass(frozen=True, eq=False)
class BlockLaw:
    """A symmetric law on the integers with P(X = x) ∝ block[|x| mod n] e^{−ε ⌊|x|/n⌋}.

    Parameters
    ----------
    block : float64 array of shape (n,)
        Positive weights of one block.
    epsilon : float
        The decay from block to block, in nats.
    """

    block: FloatArray
    epsilon: float

    @property
    def size(self) -> int:
        """n, the number of integers in a block."""
        return len(self.block)

    @cached_property
    def _decay(self) -> float:
        return math.exp(-self.epsilon)

    @cached_property
    def _one_sided(self) -> float:
        return float(self.block.sum()) / -math.expm1(-self.epsilon)

    @cached_property
    def _total(self) -> float:
        return 2 * self._one_sided - float(self.block[0])

    @cached_property
    def _suffix(self) -> FloatArray:
        return np.cumsum(self.block[::-1])[::-1]

    def pmf(self, x: Int64Array) -> FloatArray:
        """Return P(X = x)."""
        periods, place = np.divmod(np.abs(x), self.size)
        return np.asarray(self.block[place] * np.exp(-self.epsilon * periods) / self._total)

    def tail(self, x: Int64Array) -> FloatArray:
        """Return P(X ≥ x) for x ≥ 0."""
        periods, place = np.divmod(x, self.size)
        inner = self._suffix[place] + self._decay * self._one_sided
        return np.asarray(inner * np.exp(-self.epsilon * periods) / self._total)

    def mean_absolute(self) -> float:
        """Return E|X|."""
        b, fall, n = self._decay, -math.expm1(-self.epsilon), self.size
        zero, one, _ = self._moments
        return 2 * (n * b / fall**2 * zero + one / fall) / self._total

    def variance(self) -> float:
        """Return Var X = E[X²]."""
        b, fall, n = self._decay, -math.expm1(-self.epsilon), self.size
        zero, one, two = self._moments
        series = n**2 * b * (1 + b) / fall**3 * zero + 2 * n * b / fall**2 * one + two / fall
        return 2 * series / self._total

    @cached_property
    def _moments(self) -> tuple[float, float, float]:
        place = np.arange(self.size, dtype=np.float64)
        block = self.block
        return float(block.sum()), float(place @ block), float(place**2 @ block)

    def draw(self, n: int, rng: Randomness) -> Int64Array:
        """Draw n integers from integer weights, int64 of shape (n,).

        One random word gives the sign and the place within the block, another one the block.
        Zero with a minus sign is drawn anew, since zero has only one sign.
        """
        source = bit_source(rng)
        drawn = self._draw_once(n, source)
        while (again := np.flatnonzero(drawn < 0)).size:
            drawn[again] = self._draw_once(again.size, source)
        return np.where(drawn & 1, -(drawn >> 1), drawn >> 1)

    def _draw_once(self, n: int, source: BitSource) -> Int64Array:
        """Draw 2|x| + (1 where negative), −1 for a minus zero."""
        signed = self._places.draw(np.zeros(n, dtype=np.int32), source).astype(np.int64)
        periods = self._draw_periods(n, source)
        magnitude = periods * self.size + (signed >> 1)
        coded = 2 * magnitude + (signed & 1)
        return np.where(coded == 1, -1, coded)

    def _draw_periods(self, n: int, source: BitSource) -> Int64Array:
        periods = self._periods.draw(np.zeros(n, dtype=np.int32), source).astype(np.int64)
        depth = self._periods.weights.shape[1] - 1
        deeper = np.flatnonzero(periods == depth)
        while deeper.size:  # The geometric law has no memory: beyond the table, draw afresh.
            more = self._periods.draw(np.zeros(deeper.size, dtype=np.int32), source)
            periods[deeper] += more
            deeper = deeper[more == depth]
        return periods

    @cached_property
    def _places(self) -> WeightTable:
        share = np.repeat(self.block / (2 * self.block.sum()), 2)
        return WeightTable.from_probabilities(share[None, :])

    @cached_property
    def _periods(self) -> WeightTable:
        depth = min(math.ceil(_REMAINDER_BITS * math.log(2) / self.epsilon), _DEEPEST)
        share = -math.expm1(-self.epsilon) * np.exp(-self.epsilon * np.arange(depth))
        return WeightTable.from_probabilities(
            np.append(share, math.exp(-self.epsilon * depth))[None]
        )


_LARGEST_MATRIX: Final = 4096


class DiscreteNoise(SymmetricNoise):
    """y + step · X with an integer X, on a grid of n + 1 labels."""

    default_step = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.labels.spacing

    @property
    @abstractmethod
    def law(self) -> BlockLaw:
        """The law of X, in steps, with blocks of n."""

    @property
    def output_step(self) -> float:
        """The step of the labels."""
        return self.labels.spacing

    @cached_property
    def _between(self) -> tuple[FloatArray, FloatArray]:
        """log P(X = x), log P(X = x − n) for 0 < x < n: else the extreme labels differ by e^ε."""
        logs = np.log(self.law.pmf(np.arange(1, self.labels.steps)))
        return logs, logs[::-1]

    @cached_property
    def _outside(self) -> float:
        return float(self.law.tail(np.zeros(1, dtype=np.int64))[0])

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which it is (ε, δ)-label-DP, ε ≥ 0 in nats."""
        log_p, log_q = self._between
        outside = -math.expm1(min(epsilon - self.epsilon, 0)) * self._outside
        inside = np.exp(log_p) * -np.expm1(np.minimum(epsilon + log_q - log_p, 0))
        return float(outside + inside.sum())

    def rdp(self, alpha: float) -> float:
        """Return the Rényi divergence of the two extreme labels at order α > 0, in nats.

        The sum over the integers: two tails in closed form, and n − 1 terms between.
        """
        if not alpha > 0:
            raise InputError(f"The order alpha must be above 0, got {alpha}.")
        if math.isinf(alpha):
            return self.epsilon
        log_p, log_q = self._between
        if alpha == 1:
            tails = self._outside * self.epsilon * -math.expm1(-self.epsilon)
            return float(tails + np.sum(np.exp(log_p) * (log_p - log_q)))
        side = math.log(self._outside)
        ends = [side + (alpha - 1) * self.epsilon, side - alpha * self.epsilon]
        terms = np.concatenate([alpha * log_p + (1 - alpha) * log_q, ends])
        top = float(terms.max())
        return max((top + math.log(np.exp(terms - top).sum())) / (alpha - 1), 0.0)

    @property
    def output_values(self) -> FloatArray | None:
        """The grid with clipping; None without, where any step may occur."""
        return self.labels.values if self.clipped else None

    def bin_edges(self, bins: int) -> FloatArray:
        """Return bounds halfway between steps, with a bin beyond each end of the grid."""
        if self.clipped:
            return NumericMechanism.bin_edges(self, bins)
        grid = self.labels
        steps = grid.at(np.arange(-1, grid.steps + 2))
        half = grid.spacing / 2
        return between(steps, np.linspace(grid.low + half, grid.high - half, bins - 1))

    @cached_property
    def channel(self) -> Channel | None:
        """The k × k channel with clipping; None without, or for more than 4,096 labels."""
        k = self.labels.steps + 1
        if not self.clipped or k > _LARGEST_MATRIX:
            return None
        places = np.arange(k)
        matrix = self.law.pmf(places[None, :] - places[:, None])
        matrix[:, 0] = self.law.tail(places)
        matrix[:, -1] = self.law.tail(places[::-1])
        return Channel(matrix, self.labels.classes, self.labels.classes)

    def _finite(self) -> ExplicitChannel:
        if self.channel is None:
            raise InputError(f"Clipped noise is analysed for at most {_LARGEST_MATRIX} labels.")
        return ExplicitChannel(self.channel)

    def bias(self, labels: FloatArray | None = None) -> FloatArray:
        """Return E[ŷ | y] − y for all labels, or the given ones, float64 of shape (k,)."""
        k = self.labels.steps + 1 if labels is None else len(labels)
        return self._finite().bias(labels) if self.clipped else np.zeros(k)

    def variance(self, labels: FloatArray | None = None) -> FloatArray:
        """Return Var[ŷ | y] for all labels, or the given ones, float64 of shape (k,)."""
        if self.clipped:
            return self._finite().variance(labels)
        k = self.labels.steps + 1 if labels is None else len(labels)
        return np.full(k, self.labels.spacing**2 * self.law.variance())

    def expected_loss(self, prior: Sequence[float] | FloatArray, name: Loss = "squared") -> float:
        """Return E[ℓ(ŷ, y)] for y drawn from a prior of shape (k,).

        Squared is ½(ŷ − y)². The Poisson loss is ∞ without clipping, as outputs can be below 0.
        """
        if self.clipped:
            return self._finite().expected_loss(prior, name)
        check_prior(prior, self.labels.steps + 1)
        loss(name, self.labels.values, self.labels.values)  # Checks the labels.
        if name == "poisson":
            return math.inf
        if name == "absolute":
            return self.labels.spacing * self.law.mean_absolute()
        return 0.5 * self.labels.spacing**2 * self.law.variance()

    def sample(self, labels: IntArray, rng: Randomness = None) -> Int64Array:
        """Release labels given as codes.

        Parameters
        ----------
        labels : int32 array of shape (n,)
            Grid positions 0 … k − 1 of the true labels.
        rng : numpy.random.Generator or BitSource, optional
            The source of randomness; default: the operating system.

        Returns
        -------
        int64 array of shape (n,)
            Grid positions of the outputs; outside 0 … k − 1 only without clipping.
        """
        codes = check_codes(labels, self.labels.steps + 1)
        noisy = codes + self.law.draw(len(codes), rng)
        return np.clip(noisy, 0, self.labels.steps) if self.clipped else noisy

    def release(self, labels: npt.ArrayLike, rng: Randomness = None) -> FloatArray:
        """Release label values, each on the labels' grid; float64 of shape (n,)."""
        return self.labels.at(self.sample(self.labels.codes(labels), rng))

    def likelihood(self, released: FloatArray, labels: FloatArray) -> FloatArray:
        """Return P(released | label) at the nearest step, float64 of shape (n, g)."""
        grid, law = self.labels, self.law
        places = np.rint((released - grid.low) / grid.spacing).astype(np.int64)
        truth = np.rint((labels - grid.low) / grid.spacing).astype(np.int64)
        result = law.pmf(places[:, None] - truth[None, :])
        if self.clipped:
            result[places <= 0] = law.tail(truth)
            result[places >= grid.steps] = law.tail(grid.steps - truth)
        return np.asarray(result)

    def binned(self, edges: Sequence[float], labels: FloatArray | None = None) -> Channel:
        """Return the channel from labels to bins, as :meth:`NumericMechanism.binned`."""
        last = np.floor((check_edges(edges) - self.labels.low) / self.labels.spacing + 1e-9)
        values = self.labels.values if labels is None else labels
        places = np.rint((values - self.labels.low) / self.labels.spacing).astype(np.int64)
        offset = last[None, :].astype(np.int64) - places[:, None]
        below = self._up_to(offset)
        above = self._up_to(-1 - offset)
        if self.clipped:
            ends, starts = last >= self.labels.steps, last < 0
            below, above = np.where(ends, 1.0, below), np.where(ends, 0.0, above)
            below, above = np.where(starts, 0.0, below), np.where(starts, 1.0, above)
        return binned_channel(below, above, tuple(values.tolist()))

    def _up_to(self, x: Int64Array) -> FloatArray:
        """Return P(X ≤ x)."""
        low = self.law.tail(np.maximum(-x, 0))
        return np.where(x < 0, low, 1 - self.law.tail(np.maximum(x + 1, 0)))


def check_edges(edges: Sequence[float]) -> FloatArray:
    """Return the bounds of bins: finite and increasing, at least one."""
    cuts = np.asarray(edges, dtype=np.float64)
    if cuts.ndim != 1 or not len(cuts) or not np.isfinite(cuts).all() or (np.diff(cuts) <= 0).any():
        raise InputError("The bins' bounds must be finite numbers in increasing order.")
    return cuts


def binned_channel(below: FloatArray, above: FloatArray, labels: tuple[float, ...]) -> Channel:
    """Build a channel from P(ŷ ≤ edge) and P(ŷ > edge), both of shape (k, m − 1).

    Each bin's probability is a difference of the smaller of the two, so far tails keep their
    relative precision.
    """
    left = np.diff(below, axis=1)
    right = -np.diff(above, axis=1)
    inner = np.where(below[:, 1:] <= 0.5, left, right)
    matrix = np.column_stack([below[:, :1], inner, above[:, -1:]])
    return Channel(np.clip(matrix, 0.0, None), labels, tuple(range(matrix.shape[1])))


@dataclass(frozen=True)
class DiscreteLaplace(DiscreteNoise):
    """y + step · X with P(X = x) ∝ e^{−|x| step/b} and scale b = (high − low)/ε.

    Parameters
    ----------
    labels : LabelRange
        The labels' range, with a step where they lie on a grid; declared, never taken from data.
    epsilon : float
        ε in nats, above 0.
    clipped : bool
        Whether released labels are moved into the range, which makes them biased.

    References
    ----------
    Ghosh et al. (2009); Ghazi et al. (2023), Definition 22.

    Examples
    --------
    >>> from ldpaudit.mechanisms import DiscreteLaplace, LabelRange
    >>> DiscreteLaplace(LabelRange(0, 10, 1), epsilon=2.0).scale
    5.0
    """

    traits = numeric_traits("discrete-laplace", "discrete Laplace noise", STEPS, "range")
    settings = ("scale", "clipped")

    @property
    def scale(self) -> float:
        """The scale b of the noise, in units of the label."""
        return self.labels.width / self.epsilon

    @property
    def description(self) -> str:
        """Both parametrisations."""
        clip = "clipped to the labels' grid" if self.clipped else "not clipped"
        return (
            f"discrete Laplace noise of scale {self.scale:.6g} on {self.labels.steps + 1} labels, "
            f"{clip}: ε = {self.epsilon:.6g} nats"
        )

    @cached_property
    def law(self) -> BlockLaw:
        """The law of X, in steps."""
        n = self.labels.steps
        return BlockLaw(np.exp(-self.epsilon / n * np.arange(n)), self.epsilon)


@dataclass(frozen=True)
class DiscreteStaircase(DiscreteNoise):
    """y + step · X with weight 1 for |x| < r, e^{−ε} for r ≤ |x| < r + n, e^{−2ε} for the next n …

    n = (high − low)/step. The default r has the least variance at this ε; 1 ≤ r ≤ n.

    Parameters
    ----------
    labels : LabelRange
        The labels' range, with a step where they lie on a grid; declared, never taken from data.
    epsilon : float
        ε in nats, above 0.
    clipped : bool
        Whether released labels are moved into the range, which makes them biased.
    width : int, optional
        r, the steps at the highest weight; default: those of the least variance.

    References
    ----------
    Geng and Viswanath (2014); Ghazi et al. (2023), Definition 24, with b = e^{−ε}.
    """

    traits = numeric_traits("discrete-staircase", "discrete staircase noise", STEPS, "range")
    settings = ("clipped", "width")

    width: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        n = self.labels.steps
        stated = optimal_width(n, self.epsilon) if self.width is None else self.width
        width = check_finite("width", stated)
        if width != int(width) or not 1 <= width <= n:
            raise InputError(
                f"The 'width' parameter r must be a whole number from 1 to {n}, the labels' steps."
            )
        object.__setattr__(self, "width", int(width))

    @property
    def description(self) -> str:
        """Its parameters."""
        clip = "clipped to the labels' grid" if self.clipped else "not clipped"
        return (
            f"discrete staircase noise with r = {self.width} of {self.labels.steps} steps, {clip}: "
            f"ε = {self.epsilon:.6g} nats"
        )

    @cached_property
    def law(self) -> BlockLaw:
        """The law of X, in steps."""
        assert self.width is not None
        return _step_law(self.labels.steps, self.epsilon, self.width)


@dataclass(frozen=True)
class FineStaircase(DiscreteStaircase):
    """The same with a width that need not be whole: a step on the edge has a weight between."""

    def __post_init__(self) -> None:
        SymmetricNoise.__post_init__(self)


def _step_law(n: int, epsilon: float, width: float) -> BlockLaw:
    low = math.exp(-epsilon)
    return BlockLaw(low + (1 - low) * np.clip(width - np.arange(n), 0, 1), epsilon)


_EVERY_WIDTH: Final = 2048


def optimal_width(n: int, epsilon: float) -> int:
    """Return the r in 1 … n of least variance: among all, or near the continuous optimum."""
    centre = optimal_gamma(epsilon) * n
    near = range(max(1, int(centre) - 64), min(n, int(centre) + 64) + 1)
    candidates = range(1, n + 1) if n <= _EVERY_WIDTH else near
    return min(candidates, key=lambda r: _step_law(n, epsilon, r).variance())


def optimal_gamma(epsilon: float, loss: str = "squared") -> float:
    """Return the γ of the staircase with the least expected loss at ε in nats.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    loss : {"squared", "absolute"}
        The power of the noise to minimise.

    References
    ----------
    Geng and Viswanath (2014), Theorems 4 and 5: γ = 1/(1 + e^{ε/2}) for the absolute value, and
    −b/(1−b) + ((b − 2b² + 2b⁴ − b⁵)/2)^{1/3}/(1−b)² with b = e^{−ε} for the square.
    """
    b = math.exp(-epsilon)
    if loss == "absolute":
        return 1 / (1 + math.exp(epsilon / 2))
    # b − 2b² + 2b⁴ − b⁵ = b(1−b)³(1+b): in this form nothing cancels at small ε.
    return (math.cbrt(b * (1 + b) / 2) - b) / -math.expm1(-epsilon)
