"""Models that several audits share: each is fitted once per run, on the halves of the release."""

from typing import Final, Literal

import numpy as np

from ldpaudit.audits.interface import AuditContext
from ldpaudit.errors import InputError
from ldpaudit.models.label_model import PosteriorModel, fit_posterior
from ldpaudit.release import FloatArray, IndexArray, IntArray
from ldpaudit.work.tasks import Threads

Target = Literal["truth", "released"]

_LEARNT_ENTRIES: Final = 40_000_000
_MOST_LEARNT: Final = 1_000_000
_FEWEST_LEARNT: Final = 50_000
_BLOCK: Final = 500_000


def learning_rows(context: AuditContext, half: int) -> IndexArray:
    """Return the rows of one half that models and attacks learn from, in order.

    All up to a million, or up to 40 million values where there are more than 40 columns; else a
    random sample of so many, drawn without looking at any label.
    """
    width = max(context.release.features.width, 1)
    most = int(np.clip(_LEARNT_ENTRIES // width, _FEWEST_LEARNT, _MOST_LEARNT))
    return context.sample(context.half(half), most, "models", "learnt", str(half))


def held_out_posterior(context: AuditContext, half: int, rows: IndexArray) -> FloatArray:
    """Return P(true label | features) of some rows of the other half, float64 of shape (r, k)."""
    if len(rows) == len(context.half(1 - half)):
        return cross_fitted_posterior(context, "truth")[rows]
    return half_model(context, "truth", half).predict(context.release.features.take(rows))


def cross_fitted_posterior(context: AuditContext, target: Target) -> FloatArray:
    """Return class probabilities given the features alone, each row's from the other half's model.

    The two folds are the context's halves. The probabilities are the true label's (K = k classes)
    or the released label's (K = m outputs; no channel is assumed).

    Returns float64 (n, K): Rows sum to 1, every entry is at least
    :data:`ldpaudit.models.label_model.PROBABILITY_FLOOR`. Given one half, the other half's rows are
    independent of the model that scores them. Cached; not to be written to. Raise InputError if the
    true labels are asked for and the release has none.
    """
    return context.once(f"posterior.{target}", lambda: _cross_fitted(context, target))


def half_model(context: AuditContext, target: Target, half: int) -> PosteriorModel:
    """Return the model of ``target`` fitted on the rows of one half (0 or 1), cached."""
    return context.once(f"model.{target}.{half}", lambda: _fit_half(context, target, half))


def fit_halves(context: AuditContext, target: Target) -> None:
    """Fit the models of both halves, side by side where there are two threads."""
    list(side_by_side(context).map(_fit_one, (0, 1), shared=(context, target)))


def side_by_side(context: AuditContext) -> Threads:
    """Return threads for the two halves: what is fitted on them shares this process's memory."""
    return Threads(min(context.plan.threads, 2))


def threads_of_each(context: AuditContext) -> int:
    """Return how many threads one of the two halves may use."""
    return max(context.plan.threads // 2, 1)


def _fit_one(half: int, shared: tuple[AuditContext, Target]) -> None:
    half_model(*shared, half)


def _cross_fitted(context: AuditContext, target: Target) -> FloatArray:
    _, n_codes = _codes(context, target)
    result = np.empty((len(context.release), n_codes))
    fit_halves(context, target)
    for half in (0, 1):
        model, rows = half_model(context, target, half), context.half(1 - half)
        for block in np.array_split(rows, max(-(-len(rows) // _BLOCK), 1)):
            result[block] = model.predict(context.release.features.take(block))
    result.setflags(write=False)
    return result


def _fit_half(context: AuditContext, target: Target, half: int) -> PosteriorModel:
    codes, n_codes = _codes(context, target)
    rows = learning_rows(context, half)
    rng = context.rng("models", target, str(half))
    words = "true" if target == "truth" else "released"
    context.progress.step(f"fitting a model of the {words} labels")
    features = context.release.features.take(rows)
    return fit_posterior(features, codes[rows], n_codes, rng, threads_of_each(context))


def _codes(context: AuditContext, target: Target) -> tuple[IntArray, int]:
    release = context.release
    if target == "released":
        return release.released, len(release.outputs)
    if release.truth is None:
        raise InputError("A model of the true labels needs the true labels (--truth).")
    return release.truth, len(release.classes)
