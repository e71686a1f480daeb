"""``ldpaudit privatize``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ldpaudit.cli.options import Debug, Device, Generator, option

_LABELS, _TABLES, _FEATURES = "Labels and prior", "Tables that go along", "Gaussian features"


class Loss(StrEnum):
    """What a design minimises."""

    squared = "squared"
    absolute = "absolute"
    poisson = "poisson"


def privatize(
    data: Annotated[str, typer.Argument(help="The table with the true labels: Parquet or CSV.")],
    output: Annotated[Path, option("--output", "-o", help="The release to write, a Parquet file.")],
    mechanism: Annotated[
        str, option("--mechanism", help="The mechanism's name, for instance randomized-response.")
    ],
    label: Annotated[str, option("--label", help="The true label's column.")] = "label",
    epsilon: Annotated[
        float | None, option("--epsilon", help="ε in nats, with --private-prior of the whole.")
    ] = None,
    lambda_: Annotated[
        float | None,
        option("--lambda", help="λ: the chance of a label drawn anew, instead of --epsilon."),
    ] = None,
    classes: Annotated[
        str | None,
        option("--classes", help="The labels A,B,… (default: read from the data).", panel=_LABELS),
    ] = None,
    labels: Annotated[
        str | None,
        option("--labels", help="The range of numeric labels, LO:HI or LO:HI:STEP.", panel=_LABELS),
    ] = None,
    prior: Annotated[
        Path | None,
        option("--prior", help="A public prior: CSV label,probability.", panel=_LABELS),
    ] = None,
    private_prior: Annotated[
        float | None,
        option(
            "--private-prior", help="ε₁ of --epsilon to spend on a private prior.", panel=_LABELS
        ),
    ] = None,
    loss: Annotated[
        Loss | None,
        option("--loss", help="What a design minimises (default: squared).", panel=_LABELS),
    ] = None,
    clip: Annotated[
        bool, option("--clip", help="Clip noisy labels to their declared range.", panel=_LABELS)
    ] = False,
    channel: Annotated[
        Path | None,
        option("--channel", help="A channel as CSV: rows labels, columns outputs.", panel=_TABLES),
    ] = None,
    public: Annotated[
        str | None,
        option("--public", help="A public labelled table to fit model-based-rr on.", panel=_TABLES),
    ] = None,
    floor: Annotated[
        float | None,
        option("--floor", help="The model's least probability (default: 1/(10 k)).", panel=_TABLES),
    ] = None,
    synthetic: Annotated[
        str | None,
        option("--synthetic", help="Synthetic rows with a label column.", panel=_TABLES),
    ] = None,
    generator: Annotated[
        Generator | None,
        option("--generator", help="What makes synthetic rows instead.", panel=_TABLES),
    ] = None,
    generator_data: Annotated[
        str | None,
        option(
            "--generator-data",
            help="A public labelled table to train it on (default: the private rows).",
            panel=_TABLES,
        ),
    ] = None,
    device: Annotated[
        Device, option("--device", help="Where it is trained.", panel=_TABLES)
    ] = Device.auto,
    synthetic_out: Annotated[
        Path | None,
        option(
            "--synthetic-out",
            help="Write a sample of the generator, for compare --synthetic (.parquet or .csv).",
            panel=_TABLES,
        ),
    ] = None,
    synthetic_rows: Annotated[
        int | None,
        option(
            "--synthetic-rows", help="Its rows (default: as many as the release).", panel=_TABLES
        ),
    ] = None,
    radius: Annotated[
        float | None,
        option("--radius", help="R, the largest norm of a feature vector.", panel=_FEATURES),
    ] = None,
    sigma: Annotated[
        float | None, option("--sigma", help="The noise's standard deviation.", panel=_FEATURES)
    ] = None,
    feature_epsilon: Annotated[
        float | None,
        option("--feature-epsilon", help="ε of the features, instead of --sigma.", panel=_FEATURES),
    ] = None,
    delta: Annotated[
        float | None, option("--delta", help="δ of the features.", panel=_FEATURES)
    ] = None,
    project: Annotated[
        bool, option("--project", help="Shorten longer feature vectors to R.", panel=_FEATURES)
    ] = False,
    drop: Annotated[
        list[str] | None, option("--drop", help="A column that is not released (repeatable).")
    ] = None,
    secret: Annotated[
        Path | None, option("--secret", help="Keep the true labels aside in this file, mode 0600.")
    ] = None,
    overwrite: Annotated[bool, option("--overwrite", help="Replace files that exist.")] = False,
    experimental: Annotated[
        bool,
        option("--experimental", help="Draw from a NumPy generator: not private, and declared so."),
    ] = False,
    seed: Annotated[
        int | None, option("--seed", help="The seed of an experimental release.")
    ] = None,
    quiet: Annotated[bool, option("--quiet", help="Print nothing.")] = False,
    _debug: Debug = False,
) -> None:
    """Apply a mechanism to a table and write the release with its declaration inside."""
    from ldpaudit.commands.privatize import PrivatizeRequest
    from ldpaudit.commands.privatize import privatize as apply
    from ldpaudit.commands.privatize.summary import summary_lines
    from ldpaudit.datasets.beside.priors import split_labels
    from ldpaudit.mechanisms import full_name
    from ldpaudit.terminal import progress_on_terminal, say

    request = PrivatizeRequest(
        data=data,
        output=output,
        mechanism=full_name(mechanism),
        label=label,
        epsilon=epsilon,
        noise=lambda_,
        classes=None if classes is None else split_labels(classes),
        labels=labels,
        prior=prior,
        private_prior=private_prior,
        loss=None if loss is None else loss.value,
        clipped=clip,
        channel=channel,
        public=public,
        floor=floor,
        synthetic=synthetic,
        generator=None if generator is None else generator.value,
        generator_data=generator_data,
        device=device.value,
        synthetic_out=synthetic_out,
        synthetic_rows=synthetic_rows,
        radius=radius,
        sigma=sigma,
        feature_epsilon=feature_epsilon,
        delta=delta,
        project=project,
        drop=tuple(drop or ()),
        secret=secret,
        overwrite=overwrite,
        experimental=experimental,
        seed=seed,
    )
    with progress_on_terminal(quiet) as progress:
        summary = apply(request, progress)
    if not quiet:
        for line in summary_lines(summary, request):
            say(line)
