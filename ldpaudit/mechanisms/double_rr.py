"""Double randomized response: label and features are kept or replaced independently."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.capabilities import SyntheticFeatures
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import Randomness, below, bit_source, uniform_below
from ldpaudit.mechanisms.finite import check_codes
from ldpaudit.mechanisms.interface import RESPONSE, SYNTHETIC
from ldpaudit.mechanisms.response import (
    RESPONSE_PARAMETERS,
    Kept,
    RandomizedResponse,
    Response,
    ResponseFamily,
)
from ldpaudit.release import IndexArray, IntArray


@dataclass(frozen=True)
class DoubleDraw:
    """What double randomized response releases of n rows."""

    labels: IntArray
    synthetic_rows: IndexArray


class DoubleResponse(Kept, SyntheticFeatures):
    """Label and features are each kept with probability 1 − λ, independently.

    A label that is not kept is drawn uniformly from all k labels; features that are not kept are
    those of a synthetic row of a label y', y' drawn uniformly from all k labels, with replacement.
    The synthetic rows must come from public data or from a generator with its own privacy budget.

    Busa-Fekete et al. (2023), Mechanism 2.
    """

    # None: the released features depend on the label too; see :attr:`label_channel`.
    channel = None

    @cached_property
    def _labels(self) -> Response:
        return RandomizedResponse(self.classes, self.noise)

    @property
    def label_channel(self) -> Channel:
        return self._labels.channel

    def conditional_epsilon(self, divergence: float) -> float:
        """Return ε of (α, ε, P)-label Rényi DP in nats: 2 log(1 + k(1 − λ)/λ) + Δ.

        Δ ≥ 0 bounds D_α(P_{X|y} ‖ P̂_{X|y}) in nats for every label. With an estimate of Δ the
        result is an estimate.

        Busa-Fekete et al. (2023), Theorem 7.1.
        """
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
                f"The synthetic table must have rows of every label; {empty} label(s) have none."
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
