"""The seam for several answers of a person: columns of a file, releases of a column, strata.

The core audits one private column of one release. A part of this package registers how trees of
them are read and audited, in the group ``ldpaudit.trees``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ldpaudit.errors import InputError
from ldpaudit.plugins import loaded, ours
from ldpaudit.release import Release
from ldpaudit.result import AuditResult, Note

if TYPE_CHECKING:
    from ldpaudit.audits.interface import Execution
    from ldpaudit.options import AuditOptions
    from ldpaudit.pipeline.terms import Terms
    from ldpaudit.receipt.found import Replay
    from ldpaudit.work.progress import Progress


class Tree(Protocol):
    """Several answers of the same people, which are audited one by one and together."""

    @property
    def leaves(self) -> tuple[Release, ...]:
        """Each private column of each release in it, in the order of the releases."""

    def with_replays(self, replays: Sequence["Replay | None"]) -> "Tree":
        """Return the tree with what drawing the noise of each of its releases again found."""

    def audit(self, terms: "Terms", run: "Execution", notes: tuple[Note, ...]) -> AuditResult:
        """Return one result, which holds those of the parts; ``notes``: those of the reader."""


@dataclass(frozen=True)
class Trees:
    """How trees are read and audited; registered in the group ``ldpaudit.trees``."""

    read: Callable[[Sequence[Any], "AuditOptions", "Progress"], tuple[Tree, tuple[Note, ...]]]
    """From the columns of a release, or several releases, to their tree, and the reader's notes."""
    of_strata: Callable[[Release, "Replay | None"], Tree]
    """From a column whose rows have strata, and what drawing its noise again found, to its tree."""


def trees(what: str) -> Trees:
    """Return how trees are read and audited.

    InputError where this installation audits single columns alone; ``what`` it was given instead.
    """
    for point in ours("tree").values():
        return loaded("tree", point, Trees)
    raise InputError(
        "This installation audits one private column of one release, with one channel for all "
        f"rows. Got {what}."
    )
