"""Noise on numbers of a declared range: on a grid in whole steps, or anywhere on 1,024 steps."""

# Noise is drawn in whole steps from laws that repeat themselves: |x| = jn + s (block j, place s <
# n) has the probability e^{−jε} · block[s], up to one factor. So everything has a closed form in
# the n weights of a block, and a draw needs only a table of one block: beyond it the law repeats,
# and no tail is cut off.
#
# Drawn in floating point, continuous noise reveals labels through its last bits (Mironov 2012). So
# labels that may be any number of a range are rounded at random, without bias, to 1,024 steps, and
# the discrete form of the noise is exact. Variance, δ(ε) and Rényi divergences are within 2e-4 of
# those of continuous noise, and ε is the same.

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.block_law import BlockLaw, Int64Array
from ldpaudit.mechanisms.capabilities import AnyNumber, StepNoise
from ldpaudit.mechanisms.channel import Channel, step_rows
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.finite import Family, FiniteMechanism, Made, check_codes
from ldpaudit.mechanisms.interface import (
    NOISE,
    STEPS,
    UNBIASED,
    Mechanism,
    MechanismOptions,
    NumericMechanism,
    Problem,
    Proposal,
    numeric_traits,
)
from ldpaudit.mechanisms.label_range import LabelRange, Loss, between, loss
from ldpaudit.mechanisms.parameters import (
    check_epsilon,
    check_number,
    check_positive,
    check_prior,
    check_whole,
    either_epsilon,
    only_known,
    required,
)
from ldpaudit.mechanisms.response import ExplicitChannel
from ldpaudit.mechanisms.rounded import Rounded
from ldpaudit.release import FloatArray, IntArray, Label

FINE_STEPS: Final = 1024
REMARK: Final = (
    f"Labels are rounded at random, without bias, to {FINE_STEPS:,} steps of their range, and "
    "noise is drawn in steps: its numbers are those of continuous noise to about 1 in 10,000."
)
_LARGEST_MATRIX: Final = 4096
_EVERY_WIDTH: Final = 2048
_BEYOND: Final = 1 << 48


@dataclass(frozen=True, eq=False, repr=False)
class RangeFamily(Family):
    """A family of mechanisms on labels of a declared range: a row of the table of noise.

    Called with a range, ε in nats, whether outputs are clipped and the noise's shape, it returns a
    mechanism. ``traits``, ``parameters``, ``channel``, ``describe``, ``kind``, ``check``, ``read``,
    ``stated``, ``tolerance``, ``remarks``, ``best`` and ``designs`` are as in :class:`Family`.

    Parameters
    ----------
    law : callable, optional
        Returns the law of noise on n steps at ε with a shape.
    shape : str
        The name of the parameter that shapes the noise; empty without one.
    settle : callable, optional
        Returns the checked value of that parameter, or its best one, for a range at ε.
    by_scale : bool
        Whether ``scale``, (high − low)/ε, may be declared in place of ε.
    clips : bool
        Whether outputs may be clipped to the range.
    default_step : float or None
        The labels' step where none is declared.
    in_steps : callable, optional
        Returns what releases the labels of a mechanism on any number of the range, on 1,024 steps
        of it.
    """

    stated: Callable[[MechanismOptions], dict[str, Any]] = lambda options: (
        options.stated() | options.stated_range()
    )
    law: Callable[[int, float, Any], BlockLaw] | None = None
    shape: str = ""
    settle: Callable[[LabelRange, float, Any], float] | None = None
    by_scale: bool = False
    clips: bool = True
    default_step: float | None = None
    in_steps: "Callable[[RangeNoise], GridNoise | GridExponential] | None" = None

    def __call__(
        self,
        labels: LabelRange,
        epsilon: float,
        clipped: bool = False,
        shape: float | None = None,
    ) -> Any:
        """Build a mechanism; ``shape`` is the value of what shapes its noise, such as γ."""
        check_epsilon(epsilon)
        if not isinstance(clipped, bool):
            raise InputError("The 'clipped' parameter must be true or false.")
        settled = None if self.settle is None else self.settle(labels, epsilon, shape)
        return self._made(_parameters(labels, epsilon, clipped, settled))

    def from_parameters(
        self,
        parameters: Mapping[str, Any],
        classes: tuple[Label, ...],  # noqa: ARG002
    ) -> Mechanism:
        given = {"scale": self.by_scale, "clipped": self.clips, self.shape: self.shape}
        known = {"low", "high", "step", "epsilon", *(name for name, may in given.items() if may)}
        only_known(parameters, known, self.traits.name)
        labels = LabelRange.from_parameters({"step": self.default_step, **parameters})
        if self.by_scale:
            epsilon = either_epsilon(
                parameters,
                "scale",
                lambda scale: check_epsilon(labels.width / check_positive("scale", scale)),
                f"The mechanism {self.traits.name!r}",
            )
        else:
            epsilon = required(parameters, "epsilon", self.traits.name)
        shape = parameters.get(self.shape)
        made: Mechanism = self(labels, epsilon, parameters.get("clipped", False), shape)
        return made

    def applied_range(self, labels: LabelRange) -> LabelRange:
        return labels if "round" not in self.traits.options else super().applied_range(labels)


def _parameters(
    labels: LabelRange, epsilon: float, clipped: bool = False, shape: float | None = None
) -> dict[str, Any]:
    return {"labels": labels, "epsilon": epsilon, "clipped": clipped, "shape": shape}


class Ranged(Made, NumericMechanism):
    """A mechanism of a :class:`RangeFamily`."""

    # y + X with X of a law symmetric about 0, with or without clipping to the labels' range.
    # Clipping merges only outputs with the same likelihood ratio between the extreme labels (e^ε or
    # e^{−ε}), so ε, δ(ε) and the Rényi divergences stay the same.

    family: RangeFamily
    labels: LabelRange  # Its width is the sensitivity.
    epsilon: float
    clipped: bool
    shape: float | None

    @property
    def scale(self) -> float:
        """The scale b = (high − low)/ε of the noise, in units of the label."""
        return self.labels.width / self.epsilon

    @property
    def label_bounds(self) -> tuple[float, float]:
        return self.labels.low, self.labels.high

    @property
    def label_values(self) -> FloatArray | None:
        return None if self.labels.step is None else self.labels.values

    @property
    def error_tolerance(self) -> float:
        return UNBIASED if self.family.clips and not self.clipped else 0.0

    def parametrisations(self) -> dict[str, float]:
        scale = {"scale": self.scale} if self.family.by_scale else {}
        shape = {} if self.shape is None else {self.family.shape: float(self.shape)}
        return super().parametrisations() | scale | shape

    def declaration(self) -> Mapping[str, Any]:
        clipped = {"clipped": self.clipped} if self.family.clips else {}
        shape = {} if self.shape is None else {self.family.shape: self.shape}
        return self.labels.declaration() | {"epsilon": self.epsilon} | clipped | shape


class GridNoise(Ranged, StepNoise):
    """y + step · X with an integer X, on a grid of n + 1 labels."""

    def __init__(self, family: Family, parameters: Mapping[str, Any]) -> None:
        super().__init__(family, parameters)
        _ = self.labels.spacing

    @cached_property
    def law(self) -> BlockLaw:
        """The law of X, in steps, with blocks of n."""
        assert self.family.law is not None
        return self.family.law(self.labels.steps, self.epsilon, self.shape)

    @property
    def output_step(self) -> float:
        return self.labels.spacing

    @cached_property
    def compared(self) -> Channel:
        """The extreme labels' rows with clipping, which merges outputs of one likelihood ratio."""
        n = self.labels.steps
        ends = self.law.tail(np.array([0, n]))
        row = np.concatenate([ends[:1], self.law.pmf(np.arange(1, n)), ends[1:]])
        return Channel(np.stack([row, row[::-1]]), (0, 1), tuple(range(n + 1)))

    @property
    def output_values(self) -> FloatArray | None:
        """The grid with clipping; None without, where any step may occur."""
        return self.labels.values if self.clipped else None

    def bin_edges(self, bins: int) -> FloatArray:
        """Return bounds halfway between steps, with a bin beyond each end of the grid."""
        if self.clipped:
            return super().bin_edges(bins)
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

    @cached_property
    def _finite(self) -> FiniteMechanism:
        if self.channel is None:
            raise InputError(f"Clipped noise is analysed for at most {_LARGEST_MATRIX} labels.")
        return ExplicitChannel(self.channel)

    def bias(self, labels: FloatArray | None = None) -> FloatArray:
        k = self.labels.steps + 1 if labels is None else len(labels)
        return self._finite.bias(labels) if self.clipped else np.zeros(k)

    def variance(self, labels: FloatArray | None = None) -> FloatArray:
        k = self.labels.steps + 1 if labels is None else len(labels)
        if self.clipped:
            return self._finite.variance(labels)
        return np.full(k, self.labels.spacing**2 * self.law.variance())

    def expected_loss(self, prior: Sequence[float] | FloatArray, name: Loss = "squared") -> float:
        """Return E[ℓ(ŷ, y)]; the Poisson loss is ∞ unclipped, as outputs can be below 0."""
        if self.clipped:
            return self._finite.expected_loss(prior, name)
        check_prior(prior, self.labels.steps + 1)
        loss(name, self.labels.values, self.labels.values)  # Checks the labels.
        if name == "poisson":
            return math.inf
        if name == "absolute":
            return self.labels.spacing * self.law.mean_absolute()
        return 0.5 * self.labels.spacing**2 * self.law.variance()

    def sample(self, labels: IntArray, rng: Randomness = None) -> Int64Array:
        """Release labels given as grid positions 0 … k − 1, int64 of shape (n,).

        Grid positions of the outputs; outside 0 … k − 1 only without clipping. ``rng`` is a
        source of randomness; default: the operating system.
        """
        codes = check_codes(labels, self.labels.steps + 1)
        noisy = codes + self.law.draw(len(codes), rng)
        return np.clip(noisy, 0, self.labels.steps) if self.clipped else noisy

    def release(self, labels: npt.ArrayLike, rng: Randomness = None) -> FloatArray:
        """Release label values, each on the labels' grid; float64 of shape (n,)."""
        return self.labels.at(self.sample(self.labels.codes(labels), rng))

    def likelihood(self, released: FloatArray, labels: FloatArray) -> FloatArray:
        grid, law = self.labels, self.law
        places = np.rint((released - grid.low) / grid.spacing).astype(np.int64)
        truth = np.rint((labels - grid.low) / grid.spacing).astype(np.int64)
        result = law.pmf(places[:, None] - truth[None, :])
        if self.clipped:
            result[places <= 0] = law.tail(truth)
            result[places >= grid.steps] = law.tail(grid.steps - truth)
        return np.asarray(result)

    def binned(self, edges: Sequence[float], labels: FloatArray | None = None) -> Channel:
        cuts = np.asarray(edges, dtype=np.float64)
        rising = cuts.ndim == 1 and len(cuts) and np.isfinite(cuts).all()
        if not rising or (np.diff(cuts) <= 0).any():
            raise InputError("The bins' bounds must be finite numbers in increasing order.")
        last = np.floor((cuts - self.labels.low) / self.labels.spacing + 1e-9)
        if self.clipped:  # Beyond the ends of the grid is beyond all noise.
            last[last >= self.labels.steps], last[last < 0] = _BEYOND, -_BEYOND
        values = self.labels.values if labels is None else labels
        places = np.rint((values - self.labels.low) / self.labels.spacing).astype(np.int64)
        offset = last[None, :].astype(np.int64) - places[:, None]
        below, above = self.law.up_to(offset), self.law.up_to(-1 - offset)
        # A bin is a difference of the smaller of the two, so that far tails keep their precision.
        inner = np.where(below[:, 1:] <= 0.5, np.diff(below, axis=1), -np.diff(above, axis=1))
        matrix = np.clip(np.column_stack([below[:, :1], inner, above[:, -1:]]), 0.0, None)
        return Channel(matrix, tuple(values.tolist()), tuple(range(matrix.shape[1])))


class GridExponential(FiniteMechanism, Ranged):
    """ŷ on the labels' grid with P(ŷ | y) ∝ e^{−|ŷ−y|/b} and b = (high − low)/ε, ε exact."""

    # The usual proof gives ε for weights e^{−ε|ŷ−y|/(2Δ)}. The exact ε of that mechanism is ε/2:
    # the lowest and the highest label are the worst pair, because the family has a monotone
    # likelihood ratio, and have the same factor. So the scale Δ/ε, half of what the proof requires,
    # is enough. The two ends may have another weight than the other outputs; ε is the same for
    # each.
    # McSherry and Talwar (2007); Ghazi et al. (2023), Definition 26 and appendix F, where the scale
    # is 2Δ/ε: the exact ε is then half of that ε.

    def __init__(self, family: Family, parameters: Mapping[str, Any]) -> None:
        super().__init__(family, parameters)
        if self.labels.steps >= _LARGEST_MATRIX:
            raise InputError(f"This mechanism takes at most {_LARGEST_MATRIX} labels.")

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        return float(self.parameters["epsilon"])

    @cached_property
    def channel(self) -> Channel:
        place = np.arange(self.labels.steps + 1)
        distance = np.abs(place[None, :] - place[:, None])
        weights = np.exp(-self.epsilon / self.labels.steps * distance)
        weights[:, [0, -1]] *= self.parameters.get("ends", 1.0)
        matrix = weights / weights.sum(axis=1, keepdims=True)
        return Channel(matrix, self.labels.classes, self.labels.classes)

    def worst_rows(self) -> Sequence[int]:
        return (0, -1)


class RangeNoise(Rounded, Ranged, AnyNumber):
    """A mechanism whose labels and outputs may be any number of a range, on 1,024 steps of it."""

    method = "unbiased"
    # None: the outputs are not finitely many.
    output_values = None

    @cached_property
    def fine(self) -> LabelRange:
        """The range in 1,024 steps."""
        return LabelRange(self.labels.low, self.labels.high, self.labels.width / FINE_STEPS)

    @cached_property
    def inner(self) -> GridNoise | GridExponential:
        """What releases the labels of :attr:`fine`."""
        assert self.family.in_steps is not None
        return self.family.in_steps(self)

    def _values(self, labels: FloatArray | None) -> FloatArray:
        return self.labels.values if labels is None else self.labels.check(labels)

    @property
    def output_step(self) -> float:
        """The 1,024th part of the range."""
        return self.fine.spacing

    def bin_edges(self, bins: int) -> FloatArray:
        """Return bounds halfway between steps, with a bin for each end of the range."""
        low, high, half = self.labels.low, self.labels.high, self.fine.spacing / 2
        return between(self.fine.values, np.linspace(low + half, high - half, bins - 1))

    def expected_loss(
        self,
        prior: Sequence[float] | FloatArray,
        name: Loss = "squared",
        labels: FloatArray | None = None,
    ) -> float:
        """Return E[ℓ(ŷ, y)] for y drawn from a prior of shape (k,); squared is ½(ŷ − y)²."""
        # With additive noise the Poisson loss is ∞ where an output at or below 0 is possible (for a
        # label of 0, an output below 0).
        values = self._values(labels)
        weights, outputs = check_prior(prior, len(values)), self.inner.output_values
        loss(name, values, values)  # Checks the labels.
        if outputs is not None:
            assert self.inner.channel is not None
            chances = weights[:, None] * self.rounding.mean(self.inner.channel.matrix, values)
            losses = loss(name, outputs[None, :], values[:, None])
            return float(np.where(chances > 0, losses, 0).ravel() @ chances.ravel())
        if name == "poisson":
            return math.inf
        if name == "absolute":
            return self.inner.expected_loss(np.eye(1, FINE_STEPS + 1)[0], name)
        return 0.5 * float(weights @ self.variance(values))

    def release(self, labels: npt.ArrayLike, rng: Randomness = None) -> FloatArray:
        """Release label values inside the range, float64 of shape (n,).

        ``rng`` is a source of randomness; default: the operating system.
        """
        codes = self.rounding.sample(self.labels.check(labels), rng)
        return self.fine.at(self.inner.sample(codes, rng).astype(np.int64))

    def remarks(self) -> tuple[str, ...]:
        return (REMARK,)


class _Stairs(RangeNoise):
    """Staircase noise, whose edges between steps leave a closed form of its privacy curve."""

    @cached_property
    def compared(self) -> Channel:
        """The law of the worst pair, from TV = P(|X| ≤ Δ/2), as unimodal laws cross halfway."""
        # With its edges between steps the noise has this TV exactly; the steps themselves lose
        # some.
        middle = np.array([FINE_STEPS // 2])
        assert isinstance(self.inner, GridNoise)
        law = self.inner.law
        variation = 1 - 2 * float(law.tail(middle + 1)[0]) - float(law.pmf(middle)[0])
        return step_rows(self.epsilon, variation)


def _clip(m: Ranged, where: str) -> str:
    return f"clipped to the labels' {where}" if m.clipped else "not clipped"


def _stairs_law(n: int, epsilon: float, width: float) -> BlockLaw:
    """A width that is not whole gives the step on the edge a weight between."""
    low = math.exp(-epsilon)
    return BlockLaw(low + (1 - low) * np.clip(width - np.arange(n), 0, 1), epsilon)


def optimal_width(n: int, epsilon: float) -> int:
    """Return the r in 1 … n of least variance: among all, or near the continuous optimum."""
    centre = optimal_gamma(epsilon) * n
    near = range(max(1, int(centre) - 64), min(n, int(centre) + 64) + 1)
    candidates = range(1, n + 1) if n <= _EVERY_WIDTH else near
    return min(candidates, key=lambda r: _stairs_law(n, epsilon, r).variance())


def optimal_gamma(epsilon: float, loss: str = "squared") -> float:
    """Return the γ of the staircase with the least expected ``"squared"`` or ``"absolute"`` loss.

    Geng and Viswanath (2014), Theorems 4 and 5: γ = 1/(1 + e^{ε/2}) for the absolute value, and
    −b/(1−b) + ((b − 2b² + 2b⁴ − b⁵)/2)^{1/3}/(1−b)² with b = e^{−ε} for the square.
    """
    b = math.exp(-epsilon)
    if loss == "absolute":
        return 1 / (1 + math.exp(epsilon / 2))
    # b − 2b² + 2b⁴ − b⁵ = b(1−b)³(1+b): in this form nothing cancels at small ε.
    return (math.cbrt(b * (1 + b) / 2) - b) / -math.expm1(-epsilon)


def _gamma(_labels: LabelRange, epsilon: float, stated: float | None) -> float:
    gamma = check_number("gamma", optimal_gamma(epsilon) if stated is None else stated)
    if not 0 < gamma < 1:
        raise InputError(f"The 'gamma' parameter must lie in (0, 1). Got {gamma!r} instead.")
    return gamma


def _designs(family: Callable[[], Any]) -> Mapping[str, Callable[[Problem], Proposal]]:
    return {
        "unclipped": lambda p: Proposal(family()(p.labels, p.epsilon)),
        "clipped": lambda p: Proposal(family()(p.labels, p.epsilon, clipped=True)),
    }


DiscreteLaplace: Final[RangeFamily] = RangeFamily(
    numeric_traits("discrete-laplace", "discrete Laplace noise", STEPS, "range"),
    kind=GridNoise,
    describe=lambda m: (
        f"discrete Laplace noise of scale {m.scale:.6g} on {m.labels.steps + 1} labels, "
        f"{_clip(m, 'grid')}: ε = {m.epsilon:.6g} nats"
    ),
    designs=_designs(lambda: DiscreteLaplace),
    law=lambda n, epsilon, _: BlockLaw(np.exp(-epsilon / n * np.arange(n)), epsilon),
    by_scale=True,
    default_step=1.0,
)
"""y + step · X with P(X = x) ∝ e^{−|x| step/b} and scale b = (high − low)/ε (Ghosh et al. 2009;
Ghazi et al. 2023, Definition 22): ``DiscreteLaplace(LabelRange(0, 10, 1), epsilon, clipped)``."""


DiscreteStaircase: Final[RangeFamily] = RangeFamily(
    numeric_traits("discrete-staircase", "discrete staircase noise", STEPS, "range"),
    kind=GridNoise,
    describe=lambda m: (
        f"discrete staircase noise with r = {m.shape} of {m.labels.steps} steps, "
        f"{_clip(m, 'grid')}: ε = {m.epsilon:.6g} nats"
    ),
    designs=_designs(lambda: DiscreteStaircase),
    law=_stairs_law,
    shape="width",
    settle=lambda labels, epsilon, stated: check_whole(
        "width",
        optimal_width(labels.steps, epsilon) if stated is None else stated,
        1,
        labels.steps,
    ),
    default_step=1.0,
)
"""y + step · X with weight 1 for |x| < r, e^{−ε} for r ≤ |x| < r + n, e^{−2ε} for the next n …

n = (high − low)/step. The default ``width`` r has the least variance at this ε; 1 ≤ r ≤ n. Geng and
Viswanath (2014); Ghazi et al. (2023), Definition 24, with b = e^{−ε}."""


Laplace: Final[RangeFamily] = RangeFamily(
    numeric_traits("laplace", "Laplace noise", NOISE, "range"),
    kind=RangeNoise,
    describe=lambda m: (
        f"Laplace noise of scale {m.scale:.6g}, {_clip(m, 'range')}: ε = {m.epsilon:.6g} nats"
    ),
    designs=_designs(lambda: Laplace),
    by_scale=True,
    in_steps=lambda m: DiscreteLaplace(m.fine, m.epsilon, m.clipped),
)
"""y + X with X of density e^{−|x|/b}/(2b), in 1,024 steps, and scale b = (high − low)/ε (Dwork et
al. 2006; Ghazi et al. 2023, Definition 23, clipping in appendix F):
``Laplace(LabelRange(0, 10), epsilon, clipped)``."""


Staircase: Final[RangeFamily] = RangeFamily(
    numeric_traits("staircase", "staircase noise", NOISE, "range"),
    kind=_Stairs,
    describe=lambda m: (
        f"staircase noise with γ = {m.shape:.6g}, {_clip(m, 'range')}: ε = {m.epsilon:.6g} nats"
    ),
    designs=_designs(lambda: Staircase),
    shape="gamma",
    settle=_gamma,
    # A step holds what is within half a step of it.
    in_steps=lambda m: GridNoise(
        DiscreteStaircase,
        _parameters(m.fine, m.epsilon, m.clipped, (m.shape or 0) * FINE_STEPS + 0.5),
    ),
)
"""y + X with a density in stairs: high on [0, γΔ), e^{−ε} of it up to Δ = high − low, and so on.

The default ``gamma``, the width of the highest step, has the least variance at this ε. Geng and
Viswanath (2014); Ghazi et al. (2023), Definition 25."""


Exponential: Final[RangeFamily] = RangeFamily(
    numeric_traits(
        "exponential", "the exponential mechanism", ("epsilon", "labels", "round"), "range"
    ),
    # The discrete form for labels with a step, else the continuous one.
    kind=lambda family, parameters: (
        RangeNoise if parameters["labels"].step is None else GridExponential
    )(family, parameters),
    describe=lambda m: (
        "exponential mechanism on "
        f"{'a range of numbers' if m.labels.step is None else f'{m.labels.steps + 1} labels'}, "
        f"scale {m.scale:.6g}: ε = {m.epsilon:.6g} nats exactly, "
        f"{2 * m.epsilon:.6g} by the usual proof"
    ),
    designs={
        "on the labels": lambda p: Proposal(Exponential(p.labels, p.epsilon)),
        "on their range": lambda p: Proposal(
            RangeNoise(Exponential, _parameters(p.labels, p.epsilon))
        ),
    },
    by_scale=True,
    clips=False,
    # The ends hold half a step, as the density has it.
    in_steps=lambda m: GridExponential(Exponential, _parameters(m.fine, m.epsilon) | {"ends": 0.5}),
)
"""The exponential mechanism: on the labels' grid where they have a step, else anywhere in their
range, as Laplace noise restricted to it. See :class:`GridExponential` for its exact ε."""
