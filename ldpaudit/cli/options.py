"""What the commands share beside the options of an audit: outputs, terminal, exit statuses."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from ldpaudit.options import Option

EXIT = {"pass": 0, "fail": 1, "inconclusive": 3}

Debug = Annotated[bool, Option("Show tracebacks.")]
Html = Annotated[Path | None, Option("Where to write the page.")]
Json = Annotated[Path | None, Option("Where to write the result.")]


@dataclass(frozen=True)
class Gate:
    """How verdicts become exit statuses."""

    inconclusive: Annotated[
        Literal["fail", "pass"] | None,
        Option("Exit as a failure or as a pass when inconclusive."),
    ] = None
    exit_zero: Annotated[bool, Option("Exit 0 whatever is found, unless it could not run.")] = False

    def status(self, verdict: str) -> int:
        """Return the exit status of a verdict."""
        if verdict == "inconclusive" and self.inconclusive is not None:
            verdict = self.inconclusive
        return 0 if self.exit_zero else EXIT[verdict]
