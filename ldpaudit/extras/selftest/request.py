"""The options of ``ldpaudit selftest``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ldpaudit.doors import InputError, Option, refuse


@dataclass(frozen=True, kw_only=True)
class SelftestRequest:
    """The options of ``ldpaudit selftest``."""

    minutes: Annotated[
        float | None,
        Option("Begin no release after so many minutes (default: 10; thorough: no limit)."),
    ] = None
    """After so many no further release is begun; None: 10, and no limit with ``thorough``."""
    thorough: Annotated[
        bool, Option("1,000 honest and 300 leaking releases of up to 50,000 rows: about an hour.")
    ] = False
    """1,000 honest and 300 leaking releases instead of 30 and 21."""
    seed: Annotated[int, Option("The seed of all releases and audits.")] = 20260101
    """Of all releases and audits."""
    threads: Annotated[
        int | None, Option("Releases audited at the same time (default: all processors).")
    ] = None
    """Releases that are audited at the same time; None: as many as there are processors."""
    resume: Annotated[
        Path | None, Option("Keep finished releases in this folder, and go on from there.")
    ] = None
    """A folder for finished releases."""

    def check(self) -> None:
        """Refuse values out of range (InputError)."""
        if self.minutes is not None and not self.minutes > 0:
            raise InputError(f"The 'minutes' must be more than 0. Got {self.minutes:g} instead.")
        if self.threads is not None and self.threads < 1:
            raise InputError(f"The 'threads' must be at least 1. Got {self.threads} instead.")
        refuse(self.seed < 0, "The seed must not be negative.")
