"""Where a design is written."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ldpaudit.doors import Option, Outputs


@dataclass(frozen=True)
class DesignOutputs(Outputs):
    """Where a design and the channel that was found are written; all or nothing."""

    channel_out: Annotated[
        Path | None, Option("Where to write the channel of --invariant, for privatize --channel.")
    ] = None

    def replaces(self, name: str, path: Path) -> bool:
        """Return whether the file at ``path`` is a report, or a channel where one is written."""
        if name != "channel_out":
            return super().replaces(name, path)
        try:
            with path.open(encoding="utf-8", newline="") as file:
                rows = [row for row in csv.reader(file) if row]
        except (OSError, ValueError, csv.Error):
            return False
        # An invariant channel has one row and one column for each label, in the same order.
        return not rows or [row[0] for row in rows] == rows[0]
