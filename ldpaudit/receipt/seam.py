"""The seam for drawing the noise of a release again.

The core states the commitment and judges what was found. A part of this package registers how the
noise is drawn, in the group ``ldpaudit.receipts``.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ldpaudit.errors import InputError
from ldpaudit.plugins import loaded, ours
from ldpaudit.receipt.found import Replay


@dataclass(frozen=True)
class DrawnAgain:
    """How noise is drawn again; registered in the group ``ldpaudit.receipts``."""

    replay: Callable[..., Replay | None]
    """From a release and its true labels to what was found; None where it has no receipt."""


def can_draw_again() -> bool:
    """Return whether this installation has the part that draws noise again."""
    return bool(ours("receipt"))


def drawn_again() -> DrawnAgain:
    """Return how noise is drawn again (InputError where this installation lacks that part)."""
    for point in ours("receipt").values():
        return loaded("receipt", point, DrawnAgain)
    raise InputError(
        "The release has a receipt, and this installation lacks what draws its noise again; "
        "install ldpaudit again."
    )
