"""What every command is: a function whose parameters are its options, and how it ends."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from ldpaudit.options import Option

if TYPE_CHECKING:
    from ldpaudit.judging.policy import Policy

# The exit status of each verdict, the worst first.
EXIT: Final = {"fail": 1, "inconclusive": 3, "pass": 0}
# That of a pass whose decision is *not yet*, where that is to fail: nothing was violated.
NOT_YET: Final = EXIT["inconclusive"]

Whom = Annotated[
    Literal["internal", "public"],
    Option("Whom reports are for; public: the decision, and nothing else that true labels reveal."),
]
Debug = Annotated[bool, Option("Show tracebacks.")]


@dataclass(frozen=True)
class Command:
    """A command of the command line; a package registers it in the group ``ldpaudit.commands``.

    The entry point has the command's name; that of ``ldpaudit mechanism NAME`` is
    ``mechanism.NAME``, and its ``group`` is ``"mechanism"``.

    Attributes
    ----------
    function : callable
        What the command does. The command has its name, and the first line of its docstring is
        its help. Its parameters are the options: each is annotated
        ``Annotated[type, Option("Help.")]`` or ``Annotated[type, Argument("Help.")]``, or is a
        dataclass of such fields. The status that it returns, one of :data:`EXIT`, is the exit
        status; None is 0, and all else is refused before anything is written or printed. An
        :class:`~ldpaudit.errors.InputError` is one line and status 2.
    group : {"", "mechanism", "policy"}
        The command after which it is called: ``ldpaudit mechanism NAME``.
    stored : callable or None
        Returns the pydantic model of what its JSON file holds, for ``report --schema``; None: it
        stores nothing.
    schema_version : str
        The version of that form.
    within : str
        An option of another command which does the work of this one, ``"run --predictions"``: it is
        no command of its own then.
    """

    function: Callable[..., Any]
    group: str = ""
    stored: Callable[[], Any] | None = None
    schema_version: str = "1.0"
    within: str = ""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.function.__name__


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

    def status(self, policy: "Policy | None", *results: Any) -> int:
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
