"""Models that several audits share: each is fitted once per run, on the halves of the release."""

from typing import Literal

import numpy as np

from ldpaudit.attacks.models.posterior import PosteriorModel, fit_posterior
from ldpaudit.audits.interface import AuditContext
from ldpaudit.errors import InputError
from ldpaudit.release import FloatArray, IntArray

Target = Literal["truth", "released"]


def cross_fitted_posterior(context: AuditContext, target: Target) -> FloatArray:
    """Return class probabilities given the features alone, each row's from the other half's model.

    The two folds are the context's halves. The probabilities are the true label's (K = k classes)
    or the released label's (K = m outputs; no channel is assumed).

    Returns
    -------
    float64 array of shape (n, K)
        Rows sum to 1, every entry is at least
        :data:`ldpaudit.attacks.models.posterior.PROBABILITY_FLOOR`. Given one half, the other
        half's rows are independent of the model that scores them. Cached; not to be written to.

    Raises
    ------
    InputError
        If the true labels are asked for and the release has none.
    """
    return context.once(f"posterior.{target}", lambda: _cross_fitted(context, target))


def half_model(context: AuditContext, target: Target, half: int) -> PosteriorModel:
    """Return the model of ``target`` fitted on the rows of one half (0 or 1), cached."""
    return context.once(f"model.{target}.{half}", lambda: _fit_half(context, target, half))


def _cross_fitted(context: AuditContext, target: Target) -> FloatArray:
    _, n_codes = _codes(context, target)
    result = np.empty((len(context.release), n_codes))
    for half in (0, 1):
        rows = context.half(1 - half)
        result[rows] = half_model(context, target, half).predict(
            context.release.features.take(rows)
        )
    result.setflags(write=False)
    return result


def _fit_half(context: AuditContext, target: Target, half: int) -> PosteriorModel:
    codes, n_codes = _codes(context, target)
    rows = context.half(half)
    rng = context.rng("models", target, str(half))
    context.progress.step(f"fitting a model of the {target} label")
    features = context.release.features.take(rows)
    return fit_posterior(features, codes[rows], n_codes, rng, context.plan.threads)


def _codes(context: AuditContext, target: Target) -> tuple[IntArray, int]:
    release = context.release
    if target == "released":
        return release.released, len(release.outputs)
    if release.truth is None:
        raise InputError("A model of the true labels needs the true labels (--truth).")
    return release.truth, len(release.classes)
