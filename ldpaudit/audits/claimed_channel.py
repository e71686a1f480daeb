"""The claimed channel as the audits see it: in the order of the release's classes and outputs."""

import numpy as np

from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.capabilities import PublicModelLabel
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.view import group_channel, view_channel
from ldpaudit.numeric_labels import NumericLabels
from ldpaudit.release import IndexArray


def model_claim(context: AuditContext) -> PublicModelLabel | None:
    """Return the claim if it is model-based, with noise, on the labels as released; else None."""
    release, claim = context.release, context.claim.offers(PublicModelLabel)
    if claim is None or claim.noise == 0:
        return None
    same = release.outputs == release.classes and claim.classes == release.classes
    return claim if same else None


def feature_dependence(context: AuditContext) -> str | None:
    """Return why bounds for feature-blind channels do not apply to the claim, None if they do."""
    claim = context.claim
    if claim.traits.rows == "bags":
        return "labels were released as the sums of bags, so rows are not independent"
    if not claim.traits.label_depends_on_features:
        return None
    return (
        f"the mechanism {claim.name!r} uses the features, so a released label that follows them "
        "need not come from the true label"
    )


@remembered("channel")
def aligned_channel(context: AuditContext) -> Channel | None:
    """Return the claimed channel in the order of the release's classes and outputs.

    For a mechanism on numbers it is the channel to the bins of its view, given the true labels
    where they are grouped. None where the claim has no channel that is the same for all features,
    and where labels are grouped and unknown: a group's channel depends on the labels in it.

    Raise InputError if the claim's labels are not those of the release.
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


def attackers_channel(context: AuditContext, rows: IndexArray) -> Channel | None:
    """Return the channel that an attacker uses who knows the true labels of some rows.

    The claimed one; where labels are grouped, each group's average over the labels of ``rows``, on
    which the attack is fitted.
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
