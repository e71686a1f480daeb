"""Model-based randomized response: the new label is drawn from a model of the features."""

import math
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.capabilities import PublicModelLabel
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import (
    BitSource,
    Randomness,
    below,
    bit_source,
    integer_weights,
)
from ldpaudit.mechanisms.finite import Family, Made, check_codes
from ldpaudit.mechanisms.interface import RESPONSE, Mechanism, MechanismOptions, Traits
from ldpaudit.mechanisms.parameters import Parameter, check_classes, check_epsilon, check_proportion
from ldpaudit.mechanisms.staged import STAGED
from ldpaudit.release import FloatArray, IntArray, Label

_BLOCK: Final = 1 << 14
_ROW_SUM_TOLERANCE: Final = 1e-6


class ModelBasedResponse(Made, PublicModelLabel):
    """Keep the label with probability 1 − λ, else draw it from P̂(y | x): one channel per row.

    T_x[y, z] = (1 − λ)·1[y = z] + λ P̂(z | x). With a floor f every P̂(z | x) is first replaced by
    f + (1 − k f) P̂(z | x), so that no row reveals more than ε = log(1 + (1 − λ)/(λ f)).

    The model must not have been fitted to the labels to be released, unless with a privacy budget
    of its own. The guarantee is for public features (label-DP with static features).

    Busa-Fekete et al. (2023), Mechanism 1.
    """

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
        """The channel of two labels in the worst row the floor allows; other outputs are merged.

        The divergence of two labels falls as the P̂ of either grows (Σ p^α q^{1−α} less their
        common part is convex in it and bounded), so in the worst row both are at the floor; with
        two labels, one is.
        """
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
    """Return λ and the floor f, by default 1/(10 k); for a stated ε, the λ that keeps it.

    λ = 1/(1 + f(e^ε − 1)), 0 where ε is beyond all floats; with f = 0 no finite ε holds.
    """
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
    traits=Traits(
        name="model-based-rr",
        title="model-based randomized response",
        labels="classes",
        outputs="labels",
        label_depends_on_features=True,
        features="unchanged",
        rows="independent",
        options=(*RESPONSE, "public", "floor", "stages"),
        stated_by=("epsilon", "lambda"),
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
