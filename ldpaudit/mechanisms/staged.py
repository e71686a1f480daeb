"""Randomized response in stages: what earlier stages released is the prior of the later ones."""

import math
from dataclasses import replace
from functools import cached_property, partial
from typing import Final

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.capabilities import StagedLabel
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import (
    Randomness,
    bit_source,
    randomized_response,
    uniform_below,
)
from ldpaudit.mechanisms.finite import Family, Made, check_codes
from ldpaudit.mechanisms.parameters import Parameter, check_classes, check_epsilon, check_whole
from ldpaudit.mechanisms.response import RandomizedResponse, lambda_of_epsilon
from ldpaudit.release import FloatArray, IndexArray, IntArray


class StagedResponse(Made, StagedLabel):
    """Each row by RR-Top-k with its own prior, which the labels released before have taught.

    A row keeps its m likeliest labels, m such that the released label is most often the true one:
    T[y, z] = e^ε/(e^ε + m − 1) at z = y, 1/(e^ε + m − 1) at the other kept labels, 1/m for a label
    that is not kept. With two kept labels or more ε is exact; each row is released once, so nothing
    adds up. The prior is a function of what is public: the row's features and released labels.

    Ghazi et al. (2021), Algorithms 3 (RRWithPrior) and 4 (LP-MST).
    """

    # None: each row has its own channel, see :meth:`channels`.
    channel = None

    @property
    def epsilon(self) -> float:
        return float(self.budget)

    @cached_property
    def compared(self) -> Channel:
        """Two kept labels: of all ε-DP channels on a pair it has the largest δ and divergences."""
        return RandomizedResponse.from_epsilon((0, 1), self.budget).compared

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
        (order, m), k = self._kept(posterior), len(self.classes)
        ranks = np.argsort(order, axis=1)
        kept, sizes = (ranks < m[:, None]).astype(np.float64), m[:, None, None]
        stay = 1 / (1 + (sizes - 1) * math.exp(-self.budget))
        off = np.where(kept[:, :, None] > 0, stay * math.exp(-self.budget), 1 / sizes)
        own = kept[:, :, None] * np.eye(k)
        return np.asarray((off * (1 - own) + stay * own) * kept[:, None, :])

    def row_likelihood(self, posterior: FloatArray, released: IntArray) -> FloatArray:
        return self.channels(posterior)[np.arange(len(released)), :, released]

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
    ),
    describe=lambda m: (
        f"randomized response on {len(m.classes)} labels in {m.stages} stages, the labels of the "
        f"stages before being each row's prior: ε = {m.epsilon:.6g} nats"
    ),
    kind=StagedResponse,
    remarks=("Each row is released once, in one stage: ε is that of one release.",),
)
"""Multi-stage randomized response (LP-MST): ``STAGED(classes, epsilon, stages)``."""
