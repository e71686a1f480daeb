"""What the probabilities of a claim's public model may mean: those before the floor, or with it."""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.mechanisms.capabilities import PublicModelLabel
from ldpaudit.release import BoolArray, FloatArray

_MOST_ROWS: Final = 200_000
# Probabilities in a file may be rounded, and the floor with them.
_ROUNDED: Final = 0.02
# A reading under which the labels are less probable than this, by the other one, is given up.
_INCREDIBLE: Final = 1e-9
_GRID: Final = np.arange(1, 65) / 64


@remembered("public model.readings")
def model_readings(context: AuditContext) -> tuple[FloatArray, ...]:
    """Return the public model's P̂(y | x) before the floor, float64 (n, k), as it may be read.

    Where all probabilities reach the floor it may have been put under them already. The claim has
    the benefit of the doubt: it is refuted only if every reading refutes it. With true labels a
    reading is dropped where the labels make it incredible, which befalls the right one with a
    probability of at most 1e-9. Empty without a model-based claim in the release's labels, or
    without its model.
    """
    release, claim = context.release, context.claim.offers(PublicModelLabel)
    known = release.public_posterior
    if claim is None or known is None or not release.outputs == release.classes == claim.classes:
        return ()
    readings, truth = list(_readings(known, claim.floor)), release.truth
    if truth is None or len(readings) == 1:
        return tuple(readings)
    rows = context.sample(np.arange(len(release)), _MOST_ROWS, "readings of the public model")
    labels, floor = release.released[rows], claim.floor
    drawn = [floor + (1 - len(claim.classes) * floor) * p[rows, labels] for p in readings]
    unchanged = labels == truth[rows]
    doubted = _incredible(unchanged, *drawn), _incredible(unchanged, *reversed(drawn))
    return tuple(p for p, doubt in zip(readings, doubted, strict=True) if not doubt)


def _readings(known: FloatArray, floor: float) -> Iterator[FloatArray]:
    yield known
    whole = 1 - known.shape[1] * floor
    if floor > 0 and whole > _ROUNDED and known.min() >= (1 - _ROUNDED) * floor:
        before = np.maximum(known - floor, 0.0)
        yield before / before.sum(axis=1, keepdims=True)


def _incredible(unchanged: BoolArray, drawn: FloatArray, otherwise: FloatArray) -> bool:
    """Return whether labels refute that they were drawn with the probabilities ``drawn``.

    Both arrays of probabilities are those of the released labels, (n,), floor included. Whatever λ
    is, the likelihood under ``otherwise``, averaged over λ, is rarely far above that under
    ``drawn``: 1/p times as large with a probability of at most p.
    """
    # Wasserman, Ramdas & Balakrishnan (2020), Universal inference, Section 3.

    def fit(noise: float, chances: FloatArray) -> float:
        return float(np.log((1 - noise) * unchanged + noise * chances).sum())

    average = logsumexp([fit(noise, otherwise) for noise in _GRID]) - math.log(len(_GRID))
    # The logarithm is concave in λ.
    best = minimize_scalar(
        lambda noise: -fit(noise, drawn),
        bounds=(1e-9, 1),
        method="bounded",
        options={"xatol": 1e-7},
    )
    return bool(average - max(-best.fun, fit(1.0, drawn)) > -math.log(_INCREDIBLE))
