"""Lower bounds of ε of several columns from true against released labels: what is counted."""

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from scipy.special import ndtri

from ldpaudit.audits.observational.power import WANTED_POWER
from ldpaudit.audits.person.seen_columns import SeenColumns
from ldpaudit.estimators.epsilon.power import worth_looking_for
from ldpaudit.estimators.epsilon.strongest import BoundEvidence, epsilon_evidence
from ldpaudit.estimators.person.columns import ColumnsEvidence, vector_evidence
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.joint import OnDomains
from ldpaudit.release import FloatArray, IntArray, label_table

_TOO_SHORT: Final = 0.7
"""A bound that stays below a claim by more than this share of it says nothing of an excess."""
_LOOSE: Final = 0.25


def detectable_excess(
    seen: SeenColumns, limit: float, rng: np.random.Generator
) -> Callable[[float], float] | None:
    """Return about the smallest excess over a claim that is found, by the error probability.

    A release as claimed is simulated and bounded like the true one. Its bound stays below the claim
    by about z_α standard errors; what lies z_α + z_β of them above is found with probability 1 − β.
    None where nothing can be simulated.
    """
    drawn = seen.simulated(rng)
    if drawn is None or not math.isfinite(limit):
        return None
    evidence = columns_evidence(seen, drawn, rng)

    def excess(alpha: float) -> float:
        quantile, bound = -ndtri(alpha), evidence.bound(alpha).epsilon
        if limit - bound > _TOO_SHORT * limit:
            return math.inf
        # The simulated bound may have come out near the claim by chance, or above it.
        spread = evidence.bound(_LOOSE).epsilon - bound
        usual = spread * quantile / (quantile + ndtri(_LOOSE)) if alpha < _LOOSE else 0.0
        short = max(limit - bound, usual)
        return float(short * (1 + ndtri(WANTED_POWER) / quantile))

    return excess


def columns_evidence(
    seen: SeenColumns, released: IntArray, rng: np.random.Generator
) -> ColumnsEvidence:
    """Count what was released of true labels, or is simulated: int32 of shape (r, d)."""
    columns, vectors = [], []
    for code in np.unique(seen.strata):
        rows = np.flatnonzero(seen.strata == code)
        labels, outputs = seen.truth[rows], released[rows]
        channels = [seen.channel(place, rows[0]) for place in range(len(seen.contexts))]
        if seen.independent:
            found = [_of_column(seen, labels, outputs, a, c, rng) for a, c in enumerate(channels)]
            own = tuple(one for one in found if one is not None)
            columns += [own] if len(own) == len(found) else []
        vectors += _of_vectors(seen, labels, outputs, rng)
    return ColumnsEvidence(tuple(columns), tuple(vectors))


def _of_vectors(
    seen: SeenColumns, labels: IntArray, outputs: IntArray, rng: np.random.Generator
) -> list[BoundEvidence]:
    sizes = [(len(c.release.classes), len(c.release.outputs)) for c in seen.contexts]
    joint, channel = seen.joint, None
    if isinstance(joint, OnDomains):
        labels, outputs = seen.in_domains(labels, outputs)
        claimed = joint.channel()
        channel = None if claimed is None else worth_looking_for(claimed).matrix
    return list(vector_evidence(labels, outputs, sizes, channel, rng))


def _of_column(
    seen: SeenColumns,
    labels: IntArray,
    outputs: IntArray,
    place: int,
    channel: FloatArray | None,
    rng: np.random.Generator,
) -> BoundEvidence | None:
    """Return the evidence of a column; None where it has one label."""
    release = seen.contexts[place].release
    if channel is not None and seen.joint is not None:
        channel = worth_looking_for(_plain(channel)).matrix
    sizes = len(release.classes), len(release.outputs)
    return epsilon_evidence(label_table(labels[:, place], outputs[:, place], *sizes), channel, rng)


def _plain(matrix: FloatArray) -> Channel:
    k, m = matrix.shape
    return Channel(matrix, tuple(range(k)), tuple(range(m)))
