"""What the commands share besides their requests: ``--debug``, and how verdicts end a command."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from ldpaudit.options import Option

if TYPE_CHECKING:
    from ldpaudit.judging.policy import Policy
    from ldpaudit.result import AuditResult

EXIT = {"fail": 1, "inconclusive": 3, "pass": 0}
"""The exit status of each verdict, the worst first."""
NOT_YET: Final = EXIT["inconclusive"]
"""That of a pass whose decision is *not yet*, where that is to fail: nothing was violated."""

Whom = Annotated[
    Literal["internal", "public"],
    Option("Whom reports are for; public: the decision, and nothing else that true labels reveal."),
]
Debug = Annotated[bool, Option("Show tracebacks.")]


@dataclass(frozen=True)
class Gate:
    """How verdicts become exit statuses."""

    inconclusive: Annotated[
        Literal["fail", "pass"] | None,
        Option("Exit as a failure or as a pass when inconclusive."),
    ] = None
    not_yet: Annotated[
        Literal["fail", "pass"] | None,
        Option("Exit 3 or 0 where the decision is 'not yet'; default: as the policy says, or 0."),
    ] = None
    exit_zero: Annotated[bool, Option("Exit 0 with any verdict.")] = False

    def status(self, policy: "Policy | None", *results: "AuditResult") -> int:
        """Return the exit status of the worst of the results, judged by a policy."""
        verdicts = {result.verdict for result in results}
        verdict = next(verdict for verdict in EXIT if verdict in verdicts)
        if verdict == "inconclusive" and self.inconclusive is not None:
            verdict = self.inconclusive
        asked = self.not_yet or ("pass" if policy is None else policy.decision.not_yet)
        if self.exit_zero:
            return 0
        if EXIT[verdict] == 0 and asked == "fail" and any(r.decision == "not yet" for r in results):
            return NOT_YET
        return EXIT[verdict]
