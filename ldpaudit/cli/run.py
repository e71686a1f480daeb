"""``ldpaudit run``, ``demo`` and ``report``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ldpaudit.cli.options import (
    Canaries,
    Debug,
    Device,
    DeviceChoice,
    Drop,
    ExitZero,
    Features,
    IdColumn,
    Inconclusive,
    Label,
    Metric,
    Neighbors,
    Only,
    Original,
    PublicPosterior,
    PublicRows,
    Queries,
    Skip,
    SliceColumns,
    Threads,
    TruthFile,
    option,
    status,
)

SHOWN = frozenset(
    {"--epsilon", "--lambda", "--mechanism", "--seed", "--queries", "--neighbors", "--metric"}
    | {"--only", "--skip", "--threads", "--device", "--budget"}
)
"""The options whose values the result may repeat: they hold no path and no column name."""


def run(
    release: Annotated[str, typer.Argument(help="The released file: Parquet, CSV or CSV.gz.")],
    label: Label = None,
    truth: TruthFile = None,
    truth_column: Annotated[
        str | None,
        option("--truth-column", help="The column of the release that holds the true labels."),
    ] = None,
    original: Original = None,
    synthetic: Annotated[
        str | None,
        option("--synthetic", help="The synthetic rows, with labels, that replaced features."),
    ] = None,
    held_out: Annotated[
        str | None,
        option("--held-out", help="Rows like the originals that no generator was trained on."),
    ] = None,
    id_column: IdColumn = None,
    drop: Drop = None,
    features: Features = None,
    mechanism: Annotated[
        str | None,
        option("--mechanism", help="The claimed mechanism, or unknown."),
    ] = None,
    epsilon: Annotated[float | None, option("--epsilon", help="The claimed ε, in nats.")] = None,
    lambda_: Annotated[
        float | None,
        option("--lambda", help="The claimed λ: the chance of a label drawn anew from all."),
    ] = None,
    channel: Annotated[
        Path | None,
        option("--channel", help="The claimed channel as CSV: rows labels, columns outputs."),
    ] = None,
    labels: Annotated[
        str | None,
        option("--labels", help="The claimed range of a numeric label: LO:HI or LO:HI:STEP."),
    ] = None,
    policy: Annotated[
        Path | None, option("--policy", help="What the release may leak (TOML).")
    ] = None,
    html: Annotated[Path | None, option("--html", help="Where to write the report.")] = None,
    json: Annotated[Path | None, option("--json", help="Where to write the result.")] = None,
    seed: Annotated[
        int | None, option("--seed", help="The seed (default: derived from the file).")
    ] = None,
    queries: Queries = None,
    neighbors: Neighbors = None,
    metric: Annotated[
        Metric, option("--metric", help="The space in which neighbours are near.")
    ] = Metric.l2,
    only: Only = None,
    skip: Skip = None,
    slices: SliceColumns = None,
    budget: Annotated[
        float | None, option("--budget", help="Seconds for the attacks (default: 60).")
    ] = None,
    public_posterior: PublicPosterior = None,
    public: PublicRows = None,
    canaries: Canaries = None,
    threads: Threads = None,
    device: DeviceChoice = Device.auto,
    show_class_names: Annotated[
        bool, option("--show-class-names", help="Name the classes and the label in the report.")
    ] = False,
    inconclusive: Annotated[
        Inconclusive | None,
        option("--inconclusive", help="Exit as a failure or as a pass when inconclusive."),
    ] = None,
    exit_zero: ExitZero = False,
    quiet: Annotated[bool, option("--quiet", help="Print the verdict only.")] = False,
    _debug: Debug = False,
) -> None:
    """Audit a released dataset and write the report."""
    from ldpaudit.claim import claim_from_options
    from ldpaudit.commands.outputs import Outputs
    from ldpaudit.commands.run.request import Request
    from ldpaudit.commands.run.work import audit_release

    outputs = Outputs.beside(release, "audit", json, html)
    request = Request(
        release=release,
        label=label,
        truth=truth,
        truth_column=truth_column,
        original=original,
        synthetic=synthetic,
        held_out=held_out,
        id_column=id_column,
        drop=tuple(drop or ()),
        features=tuple(features) if features else None,
        claim=claim_from_options(mechanism, epsilon, lambda_, channel, labels),
        channel=channel,
        policy=policy,
        seed=seed,
        queries=queries,
        neighbors=neighbors,
        metric=metric.value,
        only=tuple(only or ()),
        skip=tuple(skip or ()),
        threads=threads,
        device=device.value,
        show_class_names=show_class_names,
        slices=tuple(slices or ()),
        budget=budget,
        public_posterior=public_posterior,
        public=public,
        canaries=canaries,
        command=_command_without_names(sys.argv),
    )
    result = audit_release(request, outputs, quiet=quiet)
    raise typer.Exit(status(result.verdict, inconclusive, exit_zero))


def demo(
    folder: Annotated[
        Path, option("--folder", help="Where to put the releases and the reports.")
    ] = Path("ldpaudit-demo"),
    seed: Annotated[int, option("--seed", help="The seed of the releases.")] = 20260101,
    _debug: Debug = False,
) -> None:
    """Audit two releases of an embedded sample: an honest one and one that leaks too much."""
    from ldpaudit.commands.run.work import run_demo

    raise typer.Exit(run_demo(folder, seed))


def report(
    result: Annotated[Path, typer.Argument(help="A stored result (.json).")],
    html: Annotated[Path | None, option("--html", help="Where to write the report.")] = None,
    _debug: Debug = False,
) -> None:
    """Render a stored result again."""
    from ldpaudit.commands.run.work import render_again

    typer.echo(render_again(result, html))


def _command_without_names(argv: list[str]) -> str:
    """Return the command with its option names; values could name a path or a column."""
    words, hide, keep = ["ldpaudit"], False, False
    for word in argv[1:]:
        name, equals, value = word.partition("=")
        if word.startswith("--"):
            words.append(name if not equals else f"{name}={value if name in SHOWN else '…'}")
            keep, hide = name in SHOWN and not equals, name not in SHOWN and not equals
        elif keep or (not hide and word in ("run", "demo")):
            words.append(word)
            keep = False
        else:
            words.append("…")
            hide = False
    return " ".join(words)
