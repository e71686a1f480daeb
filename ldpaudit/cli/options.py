"""What the commands share besides their requests: ``--debug``, and how verdicts end a command."""

from dataclasses import dataclass
from typing import Annotated, Literal

from ldpaudit.options import Option

EXIT = {"fail": 1, "inconclusive": 3, "pass": 0}
"""The exit status of each verdict, the worst first."""

Debug = Annotated[bool, Option("Show tracebacks.")]


@dataclass(frozen=True)
class Gate:
    """How verdicts become exit statuses."""

    inconclusive: Annotated[
        Literal["fail", "pass"] | None,
        Option("Exit as a failure or as a pass when inconclusive."),
    ] = None
    exit_zero: Annotated[bool, Option("Exit 0 with any verdict.")] = False

    def status(self, *verdicts: str) -> int:
        """Return the exit status of the worst of the verdicts."""
        verdict = next(verdict for verdict in EXIT if verdict in verdicts)
        if verdict == "inconclusive" and self.inconclusive is not None:
            verdict = self.inconclusive
        return 0 if self.exit_zero else EXIT[verdict]
