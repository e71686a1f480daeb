"""What several audits ask: the claimed channel in the release's labels, and models of the halves.

Each model is fitted once per run, on the halves of the release.
"""

from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np

from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.errors import InputError
from ldpaudit.estimators.assumptions.clusters import equal_rows, partly_equal_rows
from ldpaudit.mechanisms.capabilities import StagedLabel
from ldpaudit.mechanisms.channel import Channel, ChannelFamily
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.view import group_channel, view_channel, view_family
from ldpaudit.models.label_model import PosteriorModel, fit_posterior
from ldpaudit.numeric_labels import NumericLabels
from ldpaudit.release import FloatArray, IndexArray, IntArray
from ldpaudit.result.stated import FIRST_STAGE
from ldpaudit.work.tasks import Threads


def feature_dependence(context: AuditContext) -> str | None:
    """Return why bounds for feature-blind channels do not apply to the claim, None if they do."""
    claim = context.claim
    if claim.traits.rows == "bags":
        return "labels were released as the sums of bags, so rows are not independent"
    if not claim.traits.label_depends_on_features:
        return None
    if claim.offers(StagedLabel) is not None:
        return (
            f"of the mechanism {claim.name!r} only the first stage is released without the "
            "features, and which rows that is is known only where the declaration states how many "
            "rows were released ('rows') and the file has as many"
        )
    return (
        f"the mechanism {claim.name!r} uses the features, so a released label that follows them "
        "need not come from the true label"
    )


def one_channel(context: AuditContext) -> AuditContext:
    """Return the context of the rows that one channel released, with that as the claim."""
    # Of a release in stages those of the first, drawn without the features; of others all rows. The
    # same context where the file has not as many rows as were released: no place tells a stage
    # then.
    staged, whole = context.claim.offers(StagedLabel), context.whole
    every = context.release if whole is None else whole.release
    if staged is None or len(every) != staged.rows:
        return context
    size = -(-staged.rows // staged.stages)

    def first_stage() -> AuditContext:
        places = context.release.places
        if places is None:
            places = np.arange(len(context.release))
        of_all = None if whole is None else whole.on_rows(np.arange(size))
        stage = context.on_rows(np.flatnonzero(places < size), whole=of_all)
        return replace(stage, claim=staged.first, assumes=(FIRST_STAGE,))

    return context.once("first stage", first_stage)


@remembered("rows.equal")
def copies(context: AuditContext) -> IndexArray:
    """Return codes of rows, int64 (n,): the same for rows with equal features, where few are."""
    return equal_rows(context.release.features)


@remembered("rows.partly equal")
def partial_copies(context: AuditContext) -> list[tuple[tuple[int, ...], IndexArray]]:
    """Return groupings of rows equal in a few columns: the array columns, and codes, int64 (n,)."""
    return partly_equal_rows(context.release.features, context.rng("partly equal rows"))


def known_of_features(context: AuditContext) -> dict[str, Any]:
    """Return what is known of rows by their features, whatever labels they have."""
    return {"rows.equal": copies(context), "rows.partly equal": partial_copies(context)}


@remembered("channel")
def aligned_channel(context: AuditContext) -> Channel | None:
    """Return the claimed channel in the order of the release's classes and outputs.

    For a mechanism on numbers it is the channel to the bins of the release's codes, given the true
    labels where they are grouped.

    Parameters
    ----------
    context : AuditContext

    Returns
    -------
    Channel or None
        Of shape (k, m). None where the claim has no channel that is the same for all features, and
        where labels are grouped and unknown: a group's channel depends on the labels in it.

    Raises
    ------
    InputError
        If the claim's labels are not those of the release.
    """
    release = context.release
    if release.numeric is not None:
        return _numeric(context.claim, release.numeric, None)
    channel = context.claim.label_channel
    if channel is None:
        return None
    classes, outputs = release.classes, release.outputs
    if set(channel.classes) != set(classes) or not set(channel.outputs) <= set(outputs):
        raise InputError("The claim's labels must be those of the release.")
    rows = [channel.classes.index(label) for label in classes]
    columns = [outputs.index(label) for label in channel.outputs]
    # An output that the mechanism never gives, such as a label left out by RR-Top-k, has zeros.
    matrix = np.zeros((len(classes), len(outputs)))
    matrix[:, columns] = channel.matrix[rows]
    return Channel(matrix, classes, outputs)


def claimed_family(context: AuditContext) -> ChannelFamily | None:
    """Return the claimed mechanism on numbers at another ε in nats, coded like the release.

    None for other mechanisms, and those that ε does not describe.
    """
    numeric = context.release.numeric
    return None if numeric is None else view_family(context.claim, numeric.view, numeric.truth)


def attackers_channel(context: AuditContext, rows: IndexArray) -> Channel | None:
    """Return the channel that an attacker uses who knows the true labels of some rows.

    The claimed one; where labels are grouped, each group's average over the labels of ``rows``,
    on which the attack is fitted.
    """
    numeric = context.release.numeric
    if numeric is None or not numeric.view.classes.grouped:
        return aligned_channel(context)
    return _numeric(context.claim, numeric, rows)


def _numeric(claim: Mechanism, labels: NumericLabels, rows: IndexArray | None) -> Channel | None:
    if not labels.view.classes.grouped:
        return view_channel(claim, labels.view)
    if labels.truth is None:
        return None
    return group_channel(claim, labels.view, labels.truth if rows is None else labels.truth[rows])


def why_unscored(context: AuditContext, purpose: str) -> str | None:
    """Return why nothing can be compared with true labels, known or implied; else None.

    ``purpose`` names what cannot be done, as in "an attack cannot be scored".
    """
    reason = why_no_channel(context) if context.release.truth is None else None
    return None if reason is None else f"without true labels {purpose}: {reason}"


def why_no_channel(context: AuditContext) -> str | None:
    """Return why the released labels alone cannot be turned into true ones, None if they can."""
    numeric, channel = context.release.numeric, aligned_channel(context)
    if numeric is not None and numeric.view.classes.grouped and channel is None:
        return "there are so many labels that they are grouped"
    if channel is None:
        return "no channel is declared that is the same for all features"
    if np.linalg.matrix_rank(channel.matrix, tol=1e-9) < len(context.release.classes):
        return "the channel has no inverse"
    if np.abs(channel.inverse).max() > np.sqrt(len(context.release)):
        return "the channel's inverse would magnify chance too much for so few rows"
    return None


Target = Literal["truth", "released"]

_LEARNT_ENTRIES: Final = 40_000_000
_MOST_LEARNT: Final = 1_000_000
_FEWEST_LEARNT: Final = 50_000
_BLOCK: Final = 500_000


def learning_rows(context: AuditContext, half: int) -> IndexArray:
    """Return the rows of one half that models and attacks learn from, in order."""
    # All up to a million, or up to 40 million values where there are more than 40 columns; else a
    # random sample of so many, drawn without looking at any label.
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

    def build() -> FloatArray:
        result = np.empty((len(context.release), _codes(context, target)[1]))
        fit_halves(context, target)
        for half in (0, 1):
            model, rows = half_model(context, target, half), context.half(1 - half)
            for block in np.array_split(rows, max(-(-len(rows) // _BLOCK), 1)):
                result[block] = model.predict(context.release.features.take(block))
        result.setflags(write=False)
        return result

    once = context.once_for_table if target == "truth" else context.once
    return once(f"posterior.{target}", build)


def half_model(context: AuditContext, target: Target, half: int) -> PosteriorModel:
    """Return the model of ``target`` fitted on the rows of one half (0 or 1), cached."""

    def fit() -> PosteriorModel:
        (codes, n_codes), rows = _codes(context, target), learning_rows(context, half)
        rng = context.rng("models", target, str(half))
        words = "true" if target == "truth" else "released"
        context.progress.step(f"fitting a model of the {words} labels")
        features = context.release.features.take(rows)
        return fit_posterior(features, codes[rows], n_codes, rng, threads_of_each(context))

    once = context.once_for_table if target == "truth" else context.once
    return once(f"model.{target}.{half}", fit)


def fit_halves(context: AuditContext, target: Target) -> None:
    """Fit the models of both halves, side by side where there are two threads."""
    list(side_by_side(context).map(_fit_one, (0, 1), shared=(context, target)))


def _fit_one(half: int, shared: tuple[AuditContext, Target]) -> None:
    half_model(*shared, half)


def side_by_side(context: AuditContext) -> Threads:
    """Return threads for the two halves: what is fitted on them shares this process's memory."""
    return Threads(min(context.plan.threads, 2))


def threads_of_each(context: AuditContext) -> int:
    """Return how many threads one of the two halves may use."""
    return max(context.plan.threads // 2, 1)


def _codes(context: AuditContext, target: Target) -> tuple[IntArray, int]:
    release = context.release
    if target == "released":
        return release.released, len(release.outputs)
    if release.truth is None:
        raise InputError("A model of the true labels needs the true labels (--truth).")
    return release.truth, len(release.classes)
