"""``ldpaudit mechanism describe|design|compose|channel``: exact analysis, no data."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ldpaudit.cli.options import Debug, option


class LossName(StrEnum):
    """The losses between a true and a released numeric label."""

    squared = "squared"
    absolute = "absolute"
    poisson = "poisson"


Epsilon = Annotated[float | None, option("--epsilon", help="ε, in nats.")]
Lambda = Annotated[
    float | None, option("--lambda", help="λ: the chance of a label drawn anew from all.")
]
Classes = Annotated[str | None, option("--classes", help="The true labels: A,B,…")]
Labels = Annotated[
    str | None, option("--labels", help="Numeric labels on a range: LO:HI or LO:HI:STEP.")
]
Prior = Annotated[
    Path | None, option("--prior", help="The labels' prior: a CSV file label,probability.")
]
Loss = Annotated[LossName, option("--loss", help="What a mechanism made for a prior minimises.")]
Json = Annotated[Path | None, option("--json", help="Where to write the result.")]
Html = Annotated[Path | None, option("--html", help="Where to write the page with pictures.")]


def describe(
    name: Annotated[str, typer.Argument(help="The mechanism, for instance randomized-response.")],
    epsilon: Epsilon = None,
    lambda_: Lambda = None,
    classes: Classes = None,
    labels: Labels = None,
    prior: Prior = None,
    loss: Loss = LossName.squared,
    more: Annotated[
        list[str] | None,
        option("--set", help="A further parameter as KEY=VALUE, such as clipped=true."),
    ] = None,
    json: Json = None,
    html: Html = None,
    _debug: Debug = False,
) -> None:
    """Say everything that is exactly known of a mechanism: ε, λ, δ(ε), Rényi curve, error."""
    from ldpaudit.commands.mechanism.describe import DescribeRequest, describe
    from ldpaudit.commands.mechanism.specification import Specification, settings
    from ldpaudit.commands.outputs import Outputs
    from ldpaudit.mechanisms import full_name

    wanted = Specification(full_name(name), epsilon, lambda_, settings(more or ()), loss.value)
    describe(DescribeRequest(wanted, classes, labels, prior, Outputs(json, html)))


def channel(
    file: Annotated[
        Path, typer.Argument(help="A channel as CSV: rows labels, columns outputs, with names.")
    ],
    prior: Prior = None,
    json: Json = None,
    html: Html = None,
    _debug: Debug = False,
) -> None:
    """Analyse a channel matrix exactly."""
    from ldpaudit.commands.mechanism.describe import describe_channel
    from ldpaudit.commands.outputs import Outputs

    describe_channel(file, prior, Outputs(json, html))


def design(
    labels: Annotated[str, option("--labels", help="The labels: LO:HI or LO:HI:STEP.")],
    epsilon: Annotated[float, option("--epsilon", help="The total ε, in nats.")],
    prior: Prior = None,
    loss: Annotated[
        LossName, option("--loss", help="What is minimised in expectation.")
    ] = LossName.squared,
    private_prior: Annotated[
        float | None,
        option("--private-prior", help="ε₁ to spend on a prior estimated from --data."),
    ] = None,
    data: Annotated[
        Path | None, option("--data", help="The file that a private prior is estimated from.")
    ] = None,
    label: Annotated[
        str | None, option("--label", help="The column of true labels in --data.")
    ] = None,
    reference: Annotated[
        bool, option("--reference", help="Solve the mesh linear program too (slow).")
    ] = False,
    json: Json = None,
    html: Html = None,
    quiet: Annotated[bool, option("--quiet", help="Show no progress.")] = False,
    _debug: Debug = False,
) -> None:
    """Compare all mechanisms for a prior, a loss and ε, and say which to take."""
    from ldpaudit.commands.mechanism.design import DesignRequest, design
    from ldpaudit.commands.outputs import Outputs

    design(
        DesignRequest(
            labels=labels,
            epsilon=epsilon,
            prior=prior,
            loss=loss.value,
            private_epsilon=private_prior,
            data=data,
            column=label,
            reference=reference,
            quiet=quiet,
            outputs=Outputs(json, html),
        )
    )


def compose(
    releases: Annotated[
        list[str],
        typer.Argument(
            help="Release files with a declaration, or NAME:KEY=VALUE,… such as "
            "randomized-response:epsilon=1,times=3."
        ),
    ],
    classes: Classes = None,
    labels: Labels = None,
    prior: Prior = None,
    loss: Loss = LossName.squared,
    json: Json = None,
    html: Html = None,
    _debug: Debug = False,
) -> None:
    """Say what several releases of the same labels give away together."""
    from ldpaudit.commands.mechanism.compose import ComposeRequest, compose_releases
    from ldpaudit.commands.outputs import Outputs

    outputs = Outputs(json, html)
    compose_releases(ComposeRequest(tuple(releases), classes, labels, prior, loss.value, outputs))
