"""What an audit could have found: the bound on simulated counts."""

# How likely is it that a bound of ε exceeds a limit, if the release was made by a given channel? As
# many releases as are needed are drawn, with a seed of their own, and bounded as the release
# itself.

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.optimize import brentq

from ldpaudit.error_budget import GROUPS, ONE_HALF
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.epsilon.strongest import (
    CANDIDATES,
    BoundDesign,
    betraying,
    design_bounds,
)
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.channel import Channel, ChannelFamily
from ldpaudit.release import BoolArray, FloatArray, IndexArray

WANTED_POWER = 0.9

# From a number of draws: whether each simulated release is found to exceed the limit.
Draw = Callable[[int, np.random.Generator], BoolArray]


def is_found(draw: Draw, wanted: float = WANTED_POWER) -> bool:
    """Return whether simulated releases are found to exceed a limit with a wanted probability.

    200 draws suffice where the share found is four standard errors away, else there are 1,000 more.
    """
    rng = np.random.default_rng(0)
    found = draw(200, rng)
    if abs(found.mean() - wanted) <= 0.08:
        found = np.concatenate([found, draw(1000, rng)])
    return bool(found.mean() >= wanted)


def smallest(
    found: Callable[[float], bool], low: float, high: float, most: float, *, ratio: bool = False
) -> float:
    """Return the smallest number that is found, to 2 %, rounded up; ∞ where none up to ``most`` is.

    It is looked for above ``low``, which is not found; ``ratio``: by the ratio of its bounds, and
    not by their difference.
    """
    while not found(high):
        low, high = high, 2 * high
        if high > most:
            return math.inf
    while high / low > 1.02 if ratio else high - low > 0.002 + 0.01 * high:
        middle = math.sqrt(low * high) if ratio else (low + high) / 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high


def smallest_excess(found: Callable[[float], bool], limit: float) -> float:
    """Return the smallest excess over a limit, up to 60 nats, at which releases are found."""
    return smallest(lambda excess: found(limit + excess), 0.0, 0.05, 60.0)


def further_rows(enough: Callable[[float], bool], rows: int) -> float:
    """Return how many more rows suffice, by whether a multiple is enough; ∞ where 10^12 do not."""
    if enough(1.0):
        return 0.0
    factor = smallest(enough, 1.0, 2.0, 1e12 / rows, ratio=True)
    return float(math.ceil(rows * (factor - 1))) if factor < math.inf else math.inf


def sharpened(channel: Channel, epsilon: float) -> Channel:
    """Return the channel whose entries are powers of another's, with a given ε.

    Of one that distinguishes nothing, randomized response; raise InsufficientDataError where its
    outputs are not its classes.
    """
    if math.isclose(epsilon, channel.epsilon, rel_tol=1e-12):
        return channel
    if channel.epsilon < 1e-9:
        if channel.outputs != channel.classes:
            raise InsufficientDataError("the claimed channel does not distinguish any two labels")
        return RandomizedResponse.from_epsilon(channel.classes, epsilon).channel
    possible = channel.matrix > 0
    logs = np.log(np.where(possible, channel.matrix, 1.0))
    logs -= logs.max(axis=1, where=possible, initial=-np.inf, keepdims=True)

    def powered(s: float) -> Channel:
        # No less than e^-700, so that what is possible stays so.
        weights = np.where(possible, np.exp(np.clip(s * logs, -700.0, 0.0)), 0.0)
        scaled = weights / weights.sum(axis=1, keepdims=True)
        return Channel(scaled, channel.classes, channel.outputs)

    top = 1.0
    while powered(top).epsilon < epsilon:
        top *= 2
    return powered(float(brentq(lambda s: powered(s).epsilon - epsilon, 0.0, top, xtol=1e-9)))


def worth_looking_for(channel: Channel) -> Channel:
    """Return the channel that bounds are designed for: a claimed one, unless it has ε = 0."""
    alike = channel.epsilon < 1e-9 and channel.outputs == channel.classes
    return sharpened(channel, 0.5) if alike else channel


@dataclass(frozen=True, eq=False)
class Claimed:
    """What is claimed of a release with true labels, and how it is bounded."""

    sizes: IndexArray
    """Int64 array of shape (k,): rows of each true label."""
    channel: Channel
    """The claimed one, by which all rows are released unless something else is said."""
    limit: float
    """The claimed ε in nats; what is found is above it."""
    family: ChannelFamily | None = None
    """The channel at another ε; None: the claimed one, :func:`sharpened`."""
    _designs: dict[tuple[bytes, bytes], BoundDesign | None] = field(default_factory=dict)

    @property
    def presumed(self) -> FloatArray:
        """The channel that bounds are designed for, float64 of shape (k, m)."""
        return worth_looking_for(self.channel).matrix

    def smallest_excess(self, alpha: float) -> float:
        """Return the smallest excess over the claim that all rows share and that is found."""
        finds = self._finder(self.sizes, self.presumed)
        return smallest_excess(lambda epsilon: finds(self._at(epsilon), alpha), self.limit)

    def further_rows(self, epsilon: float, alpha: float) -> float:
        """Return how many more rows find that a release has ``epsilon``, 0 where these do."""
        worse = self._at(epsilon)

        def enough(factor: float) -> bool:
            rows = np.ceil(self.sizes * factor).astype(np.int64)
            return self._finder(rows, self.presumed)(worse, alpha)

        return further_rows(enough, int(self.sizes.sum()))

    def smallest_clear_share(self, alpha: float) -> float:
        """Return the smallest share of rows, at random, whose release in the clear is found."""
        finds = self._finder(self.sizes, self.presumed)
        clear, claimed = clear_channel(self.presumed, self.sizes), self.channel.matrix

        def found(share: float) -> bool:
            return finds((1 - share) * claimed + share * clear, alpha)

        return smallest(found, 1e-5, 1.0, 1.0, ratio=True)

    def smallest_clear_group(self, alpha: float, fitted: float) -> float:
        """Return the smallest share of rows that, told apart by features, is found in the clear.

        The group is one of those that :func:`subgroup_tests` chooses among, filled up with rows
        released as claimed. ``alpha`` is for all groups, both ways round; ``fitted`` is the share
        of rows that a model is fitted on. Half of the rows are counted. A model ranks a group first
        that it has seen 40 rows of, twice its smallest leaf, and that stands out by 5.5 errors.
        """
        rows, one, clear_one = self._simplified()
        betrayed = float(rows @ (one * (clear_one > 0)).sum(axis=1)) / rows.sum()
        spread = math.sqrt(betrayed * (1 - betrayed))

        def found(share: float) -> bool:
            seen = share * fitted * rows.sum()
            if seen < 40 or (1 - betrayed) * math.sqrt(seen) < 5.5 * spread:
                return False
            top = next((t for t in sorted(CANDIDATES) if t >= share), 0.5)
            clear, inside = min(share / top, 1.0), np.floor(rows * top / 2).astype(np.int64)
            mixed = (1 - clear) * one + clear * clear_one
            return self._finder(inside, mixed)(mixed, GROUPS.of(alpha * ONE_HALF, "chosen"))

        return smallest(found, 1e-5, 1.0, 1.0, ratio=True)

    def _at(self, epsilon: float) -> FloatArray:
        """Return the matrix of a release at a larger ε, float64 of shape (k, m)."""
        worse = partial(sharpened, self.channel) if self.family is None else self.family
        return worse(epsilon).matrix

    def _finder(
        self, rows: IndexArray, presumed: FloatArray
    ) -> Callable[[FloatArray, float], bool]:
        """Return whether rows released by a matrix are found above the limit at a level."""
        key = rows.tobytes(), presumed.tobytes()
        if key not in self._designs:
            self._designs[key] = design_bounds(rows, presumed)
        design = self._designs[key]
        return lambda matrix, alpha: (
            design is not None
            and is_found(
                lambda draws, rng: design.exceeding(rows, matrix, self.limit, alpha, draws, rng)
            )
        )

    def _simplified(self) -> tuple[IndexArray, FloatArray, FloatArray]:
        """Return rows by label, the claimed channel and that in the clear, for a dozen labels."""
        # More count as two, the commonest and the others, which understates the power.
        sizes, channel = self.sizes, self.channel.matrix
        if len(sizes) <= 12:
            return sizes, channel, clear_channel(self.presumed, sizes)
        first = int(sizes.argmax())
        kind, others = betraying(self.presumed, sizes)[first], np.arange(len(sizes)) != first
        rest = sizes[others] @ channel[others] / max(int(sizes[others].sum()), 1)
        hits = np.array([channel[first, kind].sum(), rest[kind].sum()])
        rows = np.array([sizes[first], sizes[others].sum()], dtype=np.int64)
        return rows, np.stack([hits, 1 - hits], axis=1), np.eye(2)


def clear_channel(channel: FloatArray, sizes: IndexArray) -> FloatArray:
    """Return the channel (k, m) that reveals each label as plainly as its outputs allow.

    Where outputs are the classes, the labels themselves; else for each label the output that is
    likelier than usual by the largest factor.
    """
    k, m = channel.shape
    usual = np.maximum(sizes @ channel / max(int(sizes.sum()), 1), 1e-300)
    return np.eye(k) if k == m else np.asarray(np.eye(m)[(channel / usual).argmax(axis=1)])


def label_mixtures(table: IndexArray, channel: FloatArray) -> FloatArray:
    """Return the shares of true labels in groups of rows, float64 of shape (g, k).

    The likeliest shares given the groups' released labels (``table``, shape (g, m)), if the channel
    (k, m) made them: expectation maximisation from equal shares. Stopped early, or with few rows,
    it takes a group for more mixed than it is, and power for smaller.
    """
    shares = np.full((len(table), len(channel)), 1 / len(channel))
    rows = np.maximum(table.sum(axis=1, keepdims=True), 1)
    for _ in range(int(np.clip(1e9 / (shares.size * channel.shape[1]), 20, 1000))):
        expected = np.maximum(shares @ channel, 1e-300)
        shares = shares * ((table / rows / expected) @ channel.T)
        shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    return shares
