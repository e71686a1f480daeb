"""``ldpaudit run``, ``demo`` and ``report``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ldpaudit.cli.options import Debug, Device, Inconclusive, Metric, option, status

SHOWN = frozenset(
    {"--epsilon", "--lambda", "--mechanism", "--seed", "--queries", "--neighbors", "--metric"}
    | {"--only", "--skip", "--threads", "--device", "--budget"}
)
"""The options whose values the result may repeat: they hold no path and no column name."""


def run(
    release: Annotated[str, typer.Argument(help="The released file: Parquet, CSV or CSV.gz.")],
    label: Annotated[
        str | None,
        option("--label", help="The released label's column (default: as declared, or 'label')."),
    ] = None,
    truth: Annotated[
        str | None, option("--truth", help="A file with the true labels, in the same row order.")
    ] = None,
    truth_column: Annotated[
        str | None,
        option("--truth-column", help="The column of the release that holds the true labels."),
    ] = None,
    original: Annotated[
        str | None,
        option("--original", help="A file with the original features, in the same row order."),
    ] = None,
    synthetic: Annotated[
        str | None,
        option("--synthetic", help="The synthetic rows, with labels, that replaced features."),
    ] = None,
    held_out: Annotated[
        str | None,
        option("--held-out", help="Rows like the originals that no generator was trained on."),
    ] = None,
    id_column: Annotated[
        str | None, option("--id", help="The column on which --truth and --original are joined.")
    ] = None,
    drop: Annotated[
        list[str] | None, option("--drop", help="A column that is no feature (repeatable).")
    ] = None,
    features: Annotated[
        list[str] | None,
        option("--features", help="A column that is a feature (repeatable; default: the rest)."),
    ] = None,
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
    queries: Annotated[
        str | None, option("--queries", help="Rows that look for neighbours: a number or 'all'.")
    ] = None,
    neighbors: Annotated[
        int | None, option("--neighbors", help="How many neighbours (default: adapts to n).")
    ] = None,
    metric: Annotated[
        Metric, option("--metric", help="The space in which neighbours are near.")
    ] = Metric.l2,
    only: Annotated[
        list[str] | None, option("--only", help="Run this audit only (repeatable).")
    ] = None,
    skip: Annotated[
        list[str] | None, option("--skip", help="Leave this audit out (repeatable).")
    ] = None,
    slices: Annotated[
        list[str] | None,
        option("--slice", help="Score the best attack for each value of a column (repeatable)."),
    ] = None,
    budget: Annotated[
        float | None, option("--budget", help="Seconds for the attacks (default: 60).")
    ] = None,
    public_posterior: Annotated[
        str | None,
        option("--public-posterior", help="P̂(label | features) of model-based-rr: a table."),
    ] = None,
    public: Annotated[
        str | None, option("--public", help="Public rows with labels: what is known anyway.")
    ] = None,
    canaries: Annotated[
        str | None,
        option("--canaries", help="The probabilities that some rows' true labels were drawn with."),
    ] = None,
    threads: Annotated[
        int | None, option("--threads", help="Processors to use (default: all there are).")
    ] = None,
    device: Annotated[Device, option("--device", help="Where torch models run.")] = Device.auto,
    show_class_names: Annotated[
        bool, option("--show-class-names", help="Name the classes and the label in the report.")
    ] = False,
    inconclusive: Annotated[
        Inconclusive | None,
        option("--inconclusive", help="Exit as a failure or as a pass when inconclusive."),
    ] = None,
    exit_zero: Annotated[
        bool, option("--exit-zero", help="Exit 0 whatever is found, unless it could not run.")
    ] = False,
    quiet: Annotated[bool, option("--quiet", help="Print the verdict only.")] = False,
    _debug: Debug = False,
) -> None:
    """Audit a released dataset and write the report."""
    from ldpaudit.running import Request, audit_release, claim_from_options, report_paths

    paths = report_paths(release, html, json)
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
    result = audit_release(request, paths, quiet=quiet)
    raise typer.Exit(status(result.verdict, inconclusive, exit_zero))


def demo(
    folder: Annotated[
        Path, option("--folder", help="Where to put the releases and the reports.")
    ] = Path("ldpaudit-demo"),
    seed: Annotated[int, option("--seed", help="The seed of the releases.")] = 20260101,
    _debug: Debug = False,
) -> None:
    """Audit two releases of an embedded sample: an honest one and one that leaks too much."""
    from ldpaudit.running import run_demo

    raise typer.Exit(run_demo(folder, seed))


def report(
    result: Annotated[Path, typer.Argument(help="A stored result (.json).")],
    html: Annotated[Path | None, option("--html", help="Where to write the report.")] = None,
    _debug: Debug = False,
) -> None:
    """Render a stored result again."""
    from ldpaudit.running import render_again

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
