"""Refuse true labels that are not those of these rows."""

from typing import Final

from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext
from ldpaudit.errors import InputError
from ldpaudit.estimators.assumptions.truth_alignment import truth_alignment

_GIVE_THEM: Final = (
    "Give them in the order of the release, or join them by a column that both files have (--id)."
)


def check_alignment(context: AuditContext) -> None:
    """Check that the true labels are those of these rows, as far as the claimed channel shows it.

    Raises
    ------
    InputError
        If they fit only when shifted by some rows, or reveal nothing about the released labels
        although the claim would make it plain.
    """
    release = context.release
    if release.truth is None or release.bags is not None or release.constant:
        return
    channel = aligned_channel(context)
    if channel is None:
        return
    shift = truth_alignment(release.truth, release.released, channel.matrix)
    if shift is None:
        raise InputError(
            "The true labels reveal nothing about the released ones, as if they were in another "
            f"order or of other rows. {_GIVE_THEM} If the order is right, the labels were released "
            "with far more noise than the claim says."
        )
    if shift:
        rows = "one row" if abs(shift) == 1 else f"{abs(shift)} rows"
        raise InputError(
            f"The true labels are shifted by {rows}: they fit the claim for the rows "
            f"{'before' if shift > 0 else 'after'} theirs. {_GIVE_THEM}"
        )
