"""The noise on features: is there as much of it as claimed, and what is its ε at least?"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from scipy.stats import chi2

from ldpaudit.audits.interface import Part
from ldpaudit.doors import AuditContext, Estimate, FloatArray, IntArray, NoisyFeatures, Note
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE
from ldpaudit.extras.kinds.noisy_features import drawn
from ldpaudit.extras.kinds.noisy_features.guesses import PairGuesses, once, pair_guesses
from ldpaudit.result import Bound
from ldpaudit.result.stated import (
    FEATURE_CURVE,
    FEATURE_DRAWN,
    FEATURE_NOISE,
    FEATURE_ONE_RUN,
    FEATURE_POINT,
    FEATURE_UNCHANGED,
    INDEPENDENT,
)

_FEWEST: Final = 100
_ALIKE: Final = "noise is drawn in the same way for every row"
_ONE_SIGMA: Final = "the claim is the whole curve of Gaussian noise with one σ, not one point of it"
_WITHIN: Final = "the noise of the two rows of a pair is independent"
_PAIRS: Final = "guesses of which noisy vector is whose, of pairs whose true features are known"
_SUREST: Final = f"{_PAIRS}: the surest ones, in a number that was fixed beforehand"


def feature_parts(context: AuditContext) -> Iterator[Part]:
    """Yield bounds of ε of the features' noise, and whether there is as much as claimed."""
    claim, original = context.claim.offers(NoisyFeatures), context.release.original
    if claim is None:
        return
    table = context.release.features
    if original is None:
        yield Note.info(
            "mechanism",
            "Whether the features have the noise that is claimed of them was not looked at: that "
            "needs the true ones (--original).",
        )
        return
    if table.categorical.shape[1] or not table.numeric.shape[1]:
        return
    true, noisy = (one.numeric.astype(np.float64) for one in (original, table))
    truth = context.release.truth
    rows = np.arange(len(table))
    if context.release.groups is not None:
        rows = np.unique(context.release.groups, return_index=True)[1]
    rows = rows[np.isfinite(np.hstack([true, noisy])[rows]).all(axis=1)]
    if len(rows) < _FEWEST:
        return
    plain, true, noisy = true[rows], claim.project(true[rows]), noisy[rows]
    kept = once(true, noisy, context.rng("mechanism", "features"))
    plain, true, noisy = plain[kept], true[kept], noisy[kept]
    labels = None if truth is None else np.asarray(truth)[rows][kept]
    alpha = 1 - context.plan.confidence
    yield Estimate.upper_bound(
        FEATURE_NOISE,
        "Noise on the features against the declared one",
        max(too_little(noisy - true, claim.sigma), SMALLEST_P_VALUE),
        context.plan.confidence,
        unit="p-value",
        n=len(true),
        method="p-value: whether the squared differences from the true features, of all columns "
        "and of each, are smaller than those of Gaussian noise with the declared σ (χ²)",
        assumptions=(INDEPENDENT,),
    )
    yield from _drawn(context, claim, (plain, true, noisy), labels)
    found = pair_guesses(true, noisy, claim.sigma, alpha, context.rng("mechanism", "pairs"))
    if found is not None:
        yield from _bounds(claim, found, alpha)


def _drawn(
    context: AuditContext,
    claim: NoisyFeatures,
    features: tuple[FloatArray, FloatArray, FloatArray],
    labels: IntArray | None,
) -> Iterator[Part]:
    """Yield p-values: of values in the clear, and of noise that is not drawn as is claimed.

    ``features``: the true ones as they are, those on the ball, and the released ones; (n, p) each.
    """
    plain, true, noisy = features
    in_clear = [drawn.unchanged(one, noisy, claim.sigma) for one in (plain, true)]
    yield Estimate.upper_bound(
        FEATURE_UNCHANGED,
        "Feature values that are exactly the true ones",
        min(1.0, max(len(in_clear) * min(in_clear), SMALLEST_P_VALUE)),
        context.plan.confidence,
        unit="p-value",
        n=len(true),
        method="p-value: whether noise of the declared σ leaves so many values of a column where "
        "they were, by the distance to the next released value (Poisson)",
        assumptions=(INDEPENDENT,),
    )
    noise = noisy - true
    found = [
        drawn.repeated(noise, noisy, claim.sigma),
        drawn.another_shape(noise, noisy),
        1.0 if labels is None else drawn.goes_with(noise, noisy, labels),
    ]
    yield Estimate.upper_bound(
        FEATURE_DRAWN,
        "Noise on the features as Gaussian noise is drawn",
        min(1.0, max(len(found) * min(found), SMALLEST_P_VALUE)),
        context.plan.confidence,
        unit="p-value",
        n=len(true),
        method="p-value: whether rows have the noise of others, whether it is of another shape "
        "than Gaussian noise (Kolmogorov–Smirnov), and whether its mean differs by label (F); of "
        "columns that were neither clipped nor coarsely rounded",
        assumptions=(INDEPENDENT,),
    )


def too_little(noise: FloatArray, sigma: float) -> float:
    """Return the p-value of "noise is N(0, σ²I)" against less of it, for noise of shape (n, p).

    Half of the error is that of all columns together, half that of the column with least.
    """
    n, p = noise.shape
    squares = np.square(noise).sum(axis=0) / sigma**2
    every = float(chi2.cdf(squares.sum(), n * p))
    least = float(chi2.cdf(squares.min(), n))
    return float(min(1.0, 2 * min(every, p * least)))


def _bounds(claim: NoisyFeatures, found: PairGuesses, alpha: float) -> Iterator[Part]:
    """Yield ε of the features at least: at one point (ε, δ), and by the curve of Gaussian noise."""
    radius, delta = claim.radius, claim.feature_delta
    point, run = found.first, found.counts

    def under(level: float) -> float:
        return found.curve_epsilon(level, radius, delta)

    yield Estimate.lower_bound(
        FEATURE_POINT,
        "ε of the features’ noise, whatever the noise",
        found.point_epsilon(alpha, delta),
        1 - alpha,
        unit="nats",
        n=point.guesses,
        count=point.right,
        method=f"{_SUREST}, by one row of a pair; at δ = {delta:g}",
        assumptions=(_ALIKE,),
        reference="Steinke, Nasr & Jagielski (2023), Theorem 5.2",
    )
    yield Estimate.lower_bound(
        FEATURE_ONE_RUN,
        "ε of the features’ noise, if it is Gaussian, all rows as one run",
        found.one_run_epsilon(alpha, radius, delta),
        1 - alpha,
        unit="nats",
        n=run.guesses,
        count=run.right,
        method=f"{_SUREST}; as ε at δ = {delta:g} on the ball of radius {radius:g}",
        assumptions=(_ALIKE, _WITHIN, _ONE_SIGMA),
        reference="Mahloujifar, Melis & Chaudhuri (2025), Algorithm 1",
    )
    shown = Estimate.lower_bound(
        FEATURE_CURVE,
        "ε of the features’ noise, if it is Gaussian",
        under(alpha),
        1 - alpha,
        unit="nats",
        n=len(found.right),
        count=int(found.right.sum()),
        method=f"{_PAIRS}, all of them; as ε at δ = {delta:g} on the ball of radius {radius:g}",
        assumptions=(INDEPENDENT, _ALIKE, _ONE_SIGMA),
        reference="Dong, Roth & Su (2022), Corollary 3.3; Hoeffding (1956), Theorem 5",
    )
    yield Bound.of(shown, under)
