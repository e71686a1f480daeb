"""Mechanisms that replace a row's features, or draw its label by them: double RR, model, stages."""

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from ldpaudit.doors import (
    Channel,
    Family,
    FloatArray,
    IndexArray,
    InputError,
    IntArray,
    Mechanism,
    Parameter,
    PublicModelLabel,
    StagedLabel,
    SyntheticFeatures,
    check_classes,
    check_epsilon,
)
from ldpaudit.mechanisms.exact_sampling import (
    BitSource,
    Randomness,
    below,
    bit_source,
    integer_weights,
    randomized_response,
    uniform_below,
)
from ldpaudit.mechanisms.finite import Made, check_codes
from ldpaudit.mechanisms.interface import RESPONSE, SYNTHETIC, MechanismOptions
from ldpaudit.mechanisms.parameters import check_proportion, check_whole
from ldpaudit.mechanisms.response import (
    RESPONSE_PARAMETERS,
    Kept,
    RandomizedResponse,
    Response,
    ResponseFamily,
    lambda_of_epsilon,
)
from ldpaudit.release import Label

_BLOCK: Final = 1 << 14
_ROW_SUM_TOLERANCE: Final = 1e-6


@dataclass(frozen=True)
class DoubleDraw:
    """What double randomized response releases of n rows."""

    labels: IntArray
    synthetic_rows: IndexArray


class DoubleResponse(Kept, SyntheticFeatures):
    """Label and features are each kept with probability 1 − λ, independently."""

    # A label that is not kept is drawn uniformly from all k labels; features that are not kept are
    # those of a synthetic row of a label y', y' drawn uniformly from all k labels, with
    # replacement. The synthetic rows must come from public data or from a generator with its own
    # privacy budget.
    # Busa-Fekete et al. (2023), Mechanism 2.

    # None: the released features depend on the label too; see :attr:`label_channel`.
    channel = None

    @cached_property
    def _labels(self) -> Response:
        return RandomizedResponse(self.classes, self.noise)

    @property
    def label_channel(self) -> Channel:
        return self._labels.channel

    def conditional_epsilon(self, divergence: float) -> float:
        """Return ε of (α, ε, P)-label Rényi DP in nats: 2 log(1 + k(1 − λ)/λ) + Δ."""
        # Δ ≥ 0 bounds D_α(P_{X|y} ‖ P̂_{X|y}) in nats for every label. With an estimate of Δ the
        # result is an estimate.
        # Busa-Fekete et al. (2023), Theorem 7.1.
        if not divergence >= 0:
            raise InputError(f"The divergence must not be negative. Got {divergence!r} instead.")
        return 2 * self.epsilon + divergence

    def sample(
        self, labels: IntArray, synthetic_labels: IntArray, rng: Randomness = None
    ) -> DoubleDraw:
        codes, source = check_codes(labels, len(self.classes)), bit_source(rng)
        synthetic = check_codes(synthetic_labels, len(self.classes))
        rows = [np.flatnonzero(synthetic == y) for y in range(len(self.classes))]
        if empty := sum(not len(candidates) for candidates in rows):
            raise InputError(
                f"The synthetic table must have rows of every label; labels without any: {empty}."
            )
        chosen, replaced = np.full(len(codes), -1, dtype=np.int64), below(self.noise, codes, source)
        # A label y' uniformly, then one of its rows uniformly.
        drawn = uniform_below(len(rows), len(replaced), source)
        for y, candidates in enumerate(rows):
            of_label = replaced[drawn == y]
            picks = uniform_below(len(candidates), len(of_label), source)
            chosen[of_label] = candidates[picks.astype(np.int64)]
        return DoubleDraw(self._labels.sample(codes, source), chosen)


DoubleRR: Final = ResponseFamily(
    traits=replace(
        RandomizedResponse.traits,
        name="double-rr",
        title="double randomized response",
        features="partly synthetic",
        options=(*RESPONSE, *SYNTHETIC),
        needs=frozenset({"synthetic rows"}),
    ),
    parameters=RESPONSE_PARAMETERS,
    describe=lambda m: (
        f"double randomized response on {len(m.classes)} labels: λ = {m.noise:.6g}, "
        f"ε = {m.epsilon:.6g} nats with features taken as known, twice that plus the "
        f"synthetic features' divergence with features drawn from their label"
    ),
    kind=DoubleResponse,
    remarks=(
        "ε, δ(ε) and the Rényi curve hold for features taken as known. For features drawn from "
        "their label the Rényi parameter is at most 2ε plus the divergence of the synthetic "
        "features from the true ones, which an audit of the release estimates.",
    ),
)
"""Double randomized response: ``DoubleRR(classes, noise)`` with λ in [0, 1]."""


class StagedResponse(Made, StagedLabel):
    """Each row by RR-Top-k with its own prior, which the labels released before have taught."""

    # A row keeps its m likeliest labels, m such that the released label is most often the true one:
    # T[y, z] = e^ε/(e^ε + m − 1) at z = y, 1/(e^ε + m − 1) at the other kept labels, 1/m for a
    # label that is not kept. With two kept labels or more ε is exact; each row is released once, so
    # nothing adds up. The prior is a function of what is public: the row's features and released
    # labels.
    # Ghazi et al. (2021), Algorithms 3 (RRWithPrior) and 4 (LP-MST).

    # None: each row has its own channel, see :meth:`channels`.
    channel = None

    @property
    def epsilon(self) -> float:
        return float(self.budget)

    @cached_property
    def compared(self) -> Channel:
        """Two kept labels: of all ε-DP channels on a pair it has the largest δ and divergences."""
        return RandomizedResponse.from_epsilon((0, 1), self.budget).compared

    @cached_property
    def first(self) -> Response:
        """Randomized response: with a uniform prior all labels are kept."""
        return RandomizedResponse.from_epsilon(self.classes, self.budget)

    def _kept(self, posterior: FloatArray) -> tuple[IndexArray, IndexArray]:
        """Return each row's labels, the likeliest first, (n, k), and how many it keeps, (n,)."""
        p, k = np.asarray(posterior, dtype=np.float64), len(self.classes)
        if p.ndim != 2 or p.shape[1] != k or not np.isfinite(p).all():
            raise InputError(f"Each row's prior must give one probability to each of {k} labels.")
        order = np.argsort(-p, axis=1, kind="stable")
        hit = np.cumsum(np.take_along_axis(p, order, axis=1), axis=1)
        return order, (hit / (1 + np.arange(k) * math.exp(-self.budget))).argmax(axis=1) + 1

    def channels(self, posterior: FloatArray) -> FloatArray:
        """Return T_x[y, z] of each row, (n, k, k), given its prior, float64 (n, k)."""
        every = (np.full(len(posterior), z) for z in range(len(self.classes)))
        return np.stack([self.row_likelihood(posterior, z) for z in every], axis=2)

    def row_likelihood(self, posterior: FloatArray, released: IntArray) -> FloatArray:
        (order, m), rows = self._kept(posterior), np.arange(len(released))
        kept, decay = np.argsort(order, axis=1) < m[:, None], math.exp(-self.budget)
        stay = 1 / (1 + (m - 1) * decay)
        chances = np.where(kept, (stay * decay)[:, None], (1 / m)[:, None])
        chances[rows, released] = stay
        return np.asarray(chances * kept[rows, released][:, None])

    def sample(self, labels: IntArray, posterior: FloatArray, rng: Randomness = None) -> IntArray:
        codes, source = check_codes(labels, len(self.classes)), bit_source(rng)
        (order, m), out = self._kept(posterior), np.empty_like(codes)
        ranks = np.argsort(order, axis=1)[np.arange(len(codes)), codes].astype(np.int32)
        for size in np.unique(m).tolist():
            noise = lambda_of_epsilon(self.budget, size)
            mine = np.flatnonzero((m == size) & (ranks < size))
            drawn = randomized_response(ranks[mine], noise, size, source)
            out[mine] = order[mine, drawn]
            others = np.flatnonzero((m == size) & (ranks >= size))
            out[others] = order[others, uniform_below(size, len(others), source).astype(np.int64)]
        return out


STAGED: Final = Family(
    traits=replace(
        RandomizedResponse.traits,
        name="multi-stage-rr",
        title="randomized response in stages",
        label_depends_on_features=True,
        options=(),
        stated_by=("epsilon",),
        whole=False,
    ),
    parameters=(
        Parameter("classes", check_classes),
        Parameter("epsilon", check_epsilon, "budget"),
        Parameter("stages", partial(check_whole, "stages", low=1, high=1000)),
        Parameter("rows", partial(check_whole, "rows", low=1), default=None),
    ),
    describe=lambda m: (
        f"randomized response on {len(m.classes)} labels in {m.stages} stages, the labels of the "
        f"stages before being each row's prior: ε = {m.epsilon:.6g} nats"
    ),
    kind=StagedResponse,
    remarks=("Each row is released once, in one stage: ε is that of one release.",),
)
"""Multi-stage randomized response (LP-MST): ``STAGED(classes, epsilon, stages, rows)``."""


class ModelBasedResponse(Made, PublicModelLabel):
    """Keep the label with probability 1 − λ, else draw it from P̂(y | x): one channel per row."""

    # T_x[y, z] = (1 − λ)·1[y = z] + λ P̂(z | x). With a floor f every P̂(z | x) is first replaced
    # by f + (1 − k f) P̂(z | x), so that no row reveals more than ε = log(1 + (1 − λ)/(λ f)).
    # The model must not have been fitted to the labels to be released, unless with a privacy budget
    # of its own. The guarantee is for public features (label-DP with static features).
    # Busa-Fekete et al. (2023), Mechanism 1.

    # None: each row has its own channel, see :meth:`channels`.
    channel = None

    @property
    def epsilon(self) -> float:
        if self.noise == 1:
            return 0.0
        lowest = self.noise * self.floor
        return math.log1p((1 - self.noise) / lowest) if lowest else math.inf

    def synthetic(self, classifier: Any, features: Any) -> FloatArray:
        """Return P̂(y | x) of a fitted classifier, in the order of the mechanism's labels."""
        known = np.asarray(classifier.classes_).tolist()
        if set(known) != set(self.classes) or len(known) != len(self.classes):
            same = len(set(known) & set(self.classes))
            raise InputError(
                f"The classifier must know exactly the mechanism's {len(self.classes)} labels. "
                f"It knows {len(known)}, {same} of them among these."
            )
        probabilities = np.asarray(classifier.predict_proba(features), dtype=np.float64)
        if probabilities.ndim != 2 or probabilities.shape[1] != len(known):
            raise InputError("The classifier must return one probability per row and label.")
        return self._checked(probabilities[:, [known.index(label) for label in self.classes]])

    def _floored(self, probabilities: FloatArray) -> FloatArray:
        """Return checked distributions with the floor applied; shape (n, k)."""
        return self.floor + (1 - len(self.classes) * self.floor) * self._checked(probabilities)

    def _checked(self, probabilities: FloatArray) -> FloatArray:
        p, k = np.asarray(probabilities, dtype=np.float64), len(self.classes)
        if p.ndim != 2 or p.shape[1] != k:
            raise InputError(
                f"The model's probabilities must have one column for each of {k} labels."
            )
        bad = ~np.isfinite(p).all(axis=1) | (p < 0).any(axis=1)
        bad |= np.abs(p.sum(axis=1) - 1) > _ROW_SUM_TOLERANCE
        if bad.any():
            raise InputError(f"The model's probabilities must sum to 1; {int(bad.sum())} do not.")
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def channels(self, synthetic: FloatArray) -> FloatArray:
        """Return T_x[y, z] of each row, (n, k, k), given its P̂(y | x), float64 (n, k)."""
        p = self._floored(synthetic)
        return (1 - self.noise) * np.eye(len(self.classes)) + self.noise * p[:, None, :]

    @cached_property
    def compared(self) -> Channel:
        """The channel of two labels in the worst row the floor allows; other outputs are merged."""
        # The divergence of two labels falls as the P̂ of either grows (Σ p^α q^{1−α} less their
        # common part is convex in it and bounded), so in the worst row both are at the floor; with
        # two labels, one is.
        f, k = self.floor, len(self.classes)
        p = np.array([f, 1 - f] if k == 2 else [f, f, 1 - 2 * f])
        matrix = (1 - self.noise) * np.eye(2, len(p)) + self.noise * p
        return Channel(matrix, (0, 1), tuple(range(len(p))))

    def sample(self, labels: IntArray, synthetic: FloatArray, rng: Randomness = None) -> IntArray:
        out, source = np.array(check_codes(labels, len(self.classes))), bit_source(rng)
        if len(synthetic) != len(out):
            raise InputError(f"There are {len(out)} labels but {len(synthetic)} distributions.")
        for start in range(0, len(out), _BLOCK):
            block = out[start : start + _BLOCK]
            redraw = below(self.noise, block, source)
            block[redraw] = _draw(self._floored(synthetic[start + redraw]), source)
        return out

    def row_likelihood(self, posterior: FloatArray, released: IntArray) -> FloatArray:
        k = len(self.classes)
        drawn = self.floor + (1 - k * self.floor) * posterior
        chance = drawn[np.arange(len(released)), released]
        # T_x[y, ỹ] = (1 − λ)·1[y = ỹ] + λ P̂(ỹ | x).
        return np.asarray((1 - self.noise) * np.eye(k)[released] + self.noise * chance[:, None])

    def parametrisations(self) -> dict[str, float]:
        stated = {"lambda": float(self.noise), "floor": float(self.floor)}
        return super().parametrisations() | stated


def _draw(probabilities: FloatArray, source: BitSource) -> IntArray:
    """Draw one outcome of each row's distribution by inversion on integers."""
    if not len(probabilities):
        return np.empty(0, dtype=np.int32)
    cumulative = np.cumsum(integer_weights(probabilities), axis=1, dtype=np.uint64)
    words = source.words(len(probabilities)) >> np.uint64(1)
    return np.asarray((cumulative <= words[:, None]).sum(axis=1), dtype=np.int32)


def _check(classes: tuple[Label, ...], noise: float, floor: float) -> None:  # noqa: ARG001
    if floor > 1 / len(classes):
        raise InputError(f"The 'floor' parameter must lie in [0, 1/{len(classes)}]. Got {floor!r}.")


def _stated(options: MechanismOptions) -> dict[str, Any]:
    """Return λ and the floor f, by default 1/(10 k); for a stated ε, the λ that keeps it."""
    # λ = 1/(1 + f(e^ε − 1)), 0 where ε is beyond all floats; with f = 0 no finite ε holds.
    stated = options.stated() | options.stated_classes()
    default = 1 / (10 * max(len(options.classes or ()), 1))
    floor = stated["floor"] = check_proportion("floor", stated.get("floor", default))
    epsilon = stated.pop("epsilon", None)
    if epsilon is not None:
        decay = math.exp(-check_epsilon(epsilon))
        if not floor > 0:
            raise InputError(
                "The 'floor' parameter must be above 0: with 0 no finite epsilon holds in every "
                "row."
            )
        stated["lambda"] = decay / (decay + floor * -math.expm1(-epsilon))
    return stated


class _ModelBased(Family):
    """With ``stages`` the model is learnt from the labels released before: multi-stage-rr."""

    def from_options(self, options: MechanismOptions) -> Mechanism:
        if "stages" in options.settings:
            return STAGED.from_options(options)
        return super().from_options(options)


ModelBasedRR: Final = _ModelBased(
    traits=replace(
        RandomizedResponse.traits,
        name="model-based-rr",
        title="model-based randomized response",
        label_depends_on_features=True,
        options=(*RESPONSE, "public", "posterior_out", "floor", "stages"),
        whole=False,
        needs=frozenset({"public model"}),
    ),
    parameters=(
        Parameter("classes", check_classes),
        Parameter("lambda", partial(check_proportion, "lambda"), "noise"),
        Parameter("floor", partial(check_proportion, "floor"), default=0.0),
    ),
    describe=lambda m: (
        f"model-based randomized response on {len(m.classes)} labels: λ = {m.noise:.6g}, "
        f"every model probability at least {m.floor:.6g}, ε = {m.epsilon:.6g} nats at "
        f"most in any row"
    ),
    kind=ModelBasedResponse,
    check=_check,
    stated=_stated,
    remarks=("ε, δ(ε) and the Rényi curve are those of the worst row that the floor allows.",),
)
"""Model-based randomized response: ``ModelBasedRR(classes, noise, floor)`` with λ in [0, 1] and f
in [0, 1/k]; 0 leaves P̂ unchanged, and no finite ε holds for every possible row."""
