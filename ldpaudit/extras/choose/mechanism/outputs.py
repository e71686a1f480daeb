"""Where a design is written."""

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
