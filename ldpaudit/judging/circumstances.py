"""How a release was audited, as far as advice about it depends on that."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import DeclaredColumns, IndexArray
from ldpaudit.result import AuditRecord

LeavingOut = Literal["--only", "--skip"]


@dataclass(frozen=True)
class Circumstances:
    """How a release was audited.

    Attributes
    ----------
    truth : bool
        Whether the true labels were given.
    counts : int64 array of shape (k, m) or None
        Rows by true and released label.
    channel : Channel or None
        The claimed one, in the order of the release's labels.
    records : tuple of AuditRecord
        The audits that were asked for.
    left_out : mapping from audit id to option
        The audits that were not, and the option that left each out.
    holds_truth : bool
        Whether the true labels are in the release itself.
    declared : bool
        Whether the file itself declares the claim.
    changes : tuple of str
        What has to be changed in the file before it is published, whatever its labels.
    advisable : bool
        Whether ``ldpaudit advise`` can take the release with its true labels, which are in a file
        of their own.
    columns : DeclaredColumns or None
        All private columns that the file declares, where others are not audited.
    """

    truth: bool = True
    counts: IndexArray | None = None
    channel: Channel | None = None
    records: tuple[AuditRecord, ...] = ()
    left_out: Mapping[str, LeavingOut] = field(default_factory=dict)
    holds_truth: bool = False
    declared: bool = True
    changes: tuple[str, ...] = ()
    advisable: bool = False
    columns: DeclaredColumns | None = None

    def absence(self, audit: str) -> str | None:
        """Return why an audit has no numbers, or only a part of them; None if it ran."""
        if audit in self.left_out:
            return f"the audit {audit} was left out ({self.left_out[audit]})"
        if audit in {record.id for record in self.stopped}:
            return f"the audit {audit} was stopped: {next(self._skipped(audit))}"
        return next((f"the audit {audit} did not run: {r}" for r in self._skipped(audit)), None)

    @property
    def stopped(self) -> tuple[AuditRecord, ...]:
        """The audits that ended before they were done."""
        return tuple(record for record in self.records if record.status == "stopped")

    def _skipped(self, audit: str) -> Iterator[str]:
        for record in self.records:
            if record.id == audit and record.status != "ran":
                yield record.reason.rstrip(".")
