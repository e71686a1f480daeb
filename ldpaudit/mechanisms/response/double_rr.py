"""Double randomized response: label and features are kept or replaced independently."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.capabilities import SyntheticFeatures
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import BitSource, Randomness, bit_source, uniform_below
from ldpaudit.mechanisms.finite import check_codes
from ldpaudit.mechanisms.interface import Traits
from ldpaudit.mechanisms.options import RESPONSE, SYNTHETIC
from ldpaudit.mechanisms.response.randomized_response import (
    RandomizedResponse,
    conditional_rdp_floor,
)
from ldpaudit.release import IndexArray, IntArray, Label


@dataclass(frozen=True)
class DoubleDraw:
    """What double randomized response releases of n rows.

    Attributes
    ----------
    labels : int32 array of shape (n,)
        Codes of the released labels.
    synthetic_rows : int64 array of shape (n,)
        The row of the synthetic table whose features are released, −1 where the true features
        are. Which rows are synthetic must not be released.
    """

    labels: IntArray
    synthetic_rows: IndexArray


@dataclass(frozen=True)
class DoubleRR(SyntheticFeatures):
    """Label and features are each kept with probability 1 − λ, independently.

    A label that is not kept is drawn uniformly from all k labels; features that are not kept are
    those of a synthetic row of a label y', y' drawn uniformly from all k labels.

    Parameters
    ----------
    classes : tuple
        The k ≥ 2 labels.
    noise : float
        λ in [0, 1].

    Notes
    -----
    The synthetic rows must come from public data or from a generator with its own privacy budget.
    They are drawn with replacement.

    References
    ----------
    Busa-Fekete et al. (2023), Mechanism 2.
    """

    traits = Traits(
        name="double-rr",
        title="double randomized response",
        labels="classes",
        outputs="labels",
        label_depends_on_features=False,
        features="partly synthetic",
        rows="independent",
        options=(*RESPONSE, *SYNTHETIC),
        stated_by=("epsilon", "lambda"),
        whole=True,
        needs=frozenset({"synthetic rows"}),
    )

    classes: tuple[Label, ...]
    noise: float

    def __post_init__(self) -> None:
        _ = self._labels

    @cached_property
    def _labels(self) -> RandomizedResponse:
        return RandomizedResponse(self.classes, self.noise)

    @property
    def epsilon(self) -> float:
        """ε in nats for features taken as known: log(1 + k(1 − λ)/λ) (Corollary E.2)."""
        return self._labels.epsilon

    @property
    def channel(self) -> None:
        """None: the released features depend on the label too; see :attr:`label_channel`."""
        return None

    @property
    def label_channel(self) -> Channel:
        """The channel of the label alone, that of randomized response."""
        return self._labels.channel

    @property
    def description(self) -> str:
        """Its parametrisations in words."""
        return (
            f"double randomized response on {len(self.classes)} labels: λ = {self.noise:.6g}, "
            f"ε = {self.epsilon:.6g} nats with features taken as known, twice that plus the "
            f"synthetic features' divergence with features drawn from their label"
        )

    def conditional_epsilon(self, divergence: float) -> float:
        """Return ε of (α, ε, P)-label Rényi DP in nats: 2 log(1 + k(1 − λ)/λ) + Δ.

        Δ ≥ 0 bounds D_α(P_{X|y} ‖ P̂_{X|y}) in nats for every label. With an estimate of Δ the
        result is an estimate.

        References
        ----------
        Busa-Fekete et al. (2023), Theorem 7.1.
        """
        if not divergence >= 0:
            raise InputError(f"The divergence must not be negative. Got {divergence!r} instead.")
        return 2 * self.epsilon + divergence

    def conditional_rdp_floor(self, alpha: float) -> float:
        """Return a lower bound on the Rényi DP with conditional features, α > 1, in nats."""
        return conditional_rdp_floor(alpha, self.noise, len(self.classes))

    def delta(self, epsilon: float) -> float:
        """Return δ(ε') for features taken as known, ε' ≥ 0 in nats."""
        return self._labels.delta(epsilon)

    def rdp(self, alpha: float) -> float:
        """Return the Rényi label-DP for features taken as known, at order α > 0, in nats."""
        return self._labels.rdp(alpha)

    def sample(
        self, labels: IntArray, synthetic_labels: IntArray, rng: Randomness = None
    ) -> DoubleDraw:
        """Decide what is released of each row, as :meth:`SyntheticFeatures.sample`."""
        codes, source = check_codes(labels, len(self.classes)), bit_source(rng)
        rows = _rows_by_label(synthetic_labels, len(self.classes))
        chosen = np.full(len(codes), -1, dtype=np.int64)
        threshold = math.ceil(Fraction(self.noise) * (1 << 64))
        if threshold:
            replaced = np.flatnonzero(source.words(len(codes)) <= np.uint64(threshold - 1))
            chosen[replaced] = _synthetic_rows(rows, len(replaced), source)
        return DoubleDraw(self._labels.sample(codes, source), chosen)

    def declaration(self) -> Mapping[str, Any]:
        """Return the parameters that rebuild it; the synthetic table is not part of them."""
        return self._labels.declaration()

    def parametrisations(self) -> dict[str, float]:
        """Return ``epsilon`` and ``lambda``."""
        return self._labels.parametrisations()

    def remarks(self) -> tuple[str, ...]:
        """Say what ε covers, and what the synthetic features add."""
        return (
            "ε, δ(ε) and the Rényi curve hold for features taken as known. For features drawn from "
            "their label the Rényi parameter is at most 2ε plus the divergence of the synthetic "
            "features from the true ones, which an audit of the release estimates.",
        )

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any], classes: tuple[Label, ...]) -> Self:
        """Build it from a declaration."""
        plain = RandomizedResponse.from_parameters(parameters, classes)
        return cls(plain.classes, plain.noise)


def _rows_by_label(synthetic_labels: IntArray, k: int) -> list[IndexArray]:
    codes = check_codes(synthetic_labels, k)
    rows = [np.flatnonzero(codes == y).astype(np.int64) for y in range(k)]
    empty = sum(not len(candidates) for candidates in rows)
    if empty:
        raise InputError(
            f"The synthetic table must have rows of every label; {empty} label(s) have none."
        )
    return rows


def _synthetic_rows(rows: list[IndexArray], n: int, source: BitSource) -> IndexArray:
    """Draw y' uniformly, then one of its rows uniformly; int64 of shape (n,)."""
    drawn = uniform_below(len(rows), n, source)
    chosen = np.empty(n, dtype=np.int64)
    for y, candidates in enumerate(rows):
        of_label = np.flatnonzero(drawn == y)
        chosen[of_label] = candidates[
            uniform_below(len(candidates), len(of_label), source).astype(np.int64)
        ]
    return chosen
