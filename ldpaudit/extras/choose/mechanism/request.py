"""The options of ``ldpaudit mechanism describe``, ``channel``, ``design`` and ``compose``."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ldpaudit.doors import Argument, Option
from ldpaudit.options import FileOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldpaudit.release import Label

Prior = Annotated[
    Path | None, Option("The labels' prior: a CSV file label,probability.", file=True)
]


@dataclass(frozen=True, kw_only=True)
class DomainOptions(FileOptions):
    """The labels that a mechanism is analysed for, their prior and the loss."""

    classes: Annotated[
        "str | Sequence[Label] | None", Option("The true labels: A,B,…", type=str)
    ] = None
    labels: Annotated[str | None, Option("Numeric labels on a range: LO:HI or LO:HI:STEP.")] = None
    prior: Prior = None
    loss: Annotated[
        Literal["squared", "absolute", "poisson"],
        Option("What a mechanism made for a prior minimises."),
    ] = "squared"


@dataclass(frozen=True, kw_only=True)
class DescribeRequest(DomainOptions):
    """The options of ``ldpaudit mechanism describe``."""

    name: Annotated[str, Argument("The mechanism, for instance randomized-response.")]
    epsilon: Annotated[float | None, Option("ε, in nats.")] = None
    noise: Annotated[
        float | None, Option("λ: the chance that a label is drawn again from all.", "--lambda")
    ] = None
    more: Annotated[
        tuple[str, ...],
        Option("A further parameter as KEY=VALUE, such as clipped=true (repeatable).", "--set"),
    ] = ()
    domain: Annotated[
        tuple[Any, ...],
        Option(
            "The labels of one column, A,B,… (repeatable), of joint-rr and rs-fd.",
            type=tuple[str, ...],
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class ChannelRequest(FileOptions):
    """The options of ``ldpaudit mechanism channel``."""

    file: Annotated[
        Path, Argument("A channel as CSV: rows labels, columns outputs, with names.", file=True)
    ]
    prior: Prior = None


@dataclass(frozen=True, kw_only=True)
class DesignRequest(FileOptions):
    """The options of ``ldpaudit mechanism design``."""

    labels: Annotated[
        str | None, Option("The labels: LO:HI or LO:HI:STEP (not needed with --invariant).")
    ] = None
    epsilon: Annotated[float, Option("The total ε, in nats.")]
    invariant: Annotated[
        bool,
        Option("Keep the prior's shares among released labels, and most labels (invariant PRAM)."),
    ] = False
    prior: Prior = None
    loss: Annotated[
        Literal["squared", "absolute", "poisson"], Option("What is minimised in expectation.")
    ] = "squared"
    private_epsilon: Annotated[
        float | None,
        Option("ε₁ to spend on a prior estimated from --data.", "--private-prior"),
    ] = None
    data: Annotated[
        Path | None, Option("The file that a private prior is estimated from.", file=True)
    ] = None
    column: Annotated[str | None, Option("The column of true labels in --data.", "--label")] = None


@dataclass(frozen=True, kw_only=True)
class ComposeRequest(DomainOptions):
    """The options of ``ldpaudit mechanism compose``."""

    releases: Annotated[
        tuple[str, ...],
        Argument(
            "Release files with a declaration, or NAME:KEY=VALUE,… such as "
            "randomized-response:epsilon=1,times=3.",
            file=True,
        ),
    ]
