"""What a model of the label, learnt on one half of the rows, says about rows of the other half."""

from typing import Final

import numpy as np

from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import Target, cross_fitted_posterior, half_model
from ldpaudit.release import FloatArray, IndexArray

MOST_SCORED: Final = 4_000_000
"""Of larger halves a random sample of so many rows is scored: more would not make bounds tighter
than a thousandth."""
_SHARED_UP_TO: Final = 1_000_000
"""Up to so many rows in all, every row is scored once for all audits."""
_BLOCK: Final = 250_000


def scored_rows(context: AuditContext) -> IndexArray:
    """Return the rows of the first half that a model scores, in order; blind to the labels."""
    return context.sample(context.half(0), MOST_SCORED, "instance-loss", "scored")


def scores(context: AuditContext, target: Target, rows: IndexArray) -> FloatArray:
    """Return class probabilities given the features, by the model of the second half.

    Parameters
    ----------
    context : AuditContext
    target : {"truth", "released"}
    rows : int64 array of shape (r,)
        Some of :func:`scored_rows`, in order.

    Returns
    -------
    float64 array of shape (r, K)
    """
    if len(context.release) <= _SHARED_UP_TO:
        return cross_fitted_posterior(context, target)[rows]
    known = context.once(f"instance-loss.scores.{target}", lambda: _score(context, target))
    return known[np.searchsorted(scored_rows(context), rows)]


def _score(context: AuditContext, target: Target) -> FloatArray:
    rows = scored_rows(context)
    model, features = half_model(context, target, 1), context.release.features
    starts = range(0, len(rows), _BLOCK)
    parts = (rows[start : start + _BLOCK] for start in starts)
    return np.concatenate([model.predict(features.take(part)) for part in parts])
