"""``ldpaudit compare``: releases of the same data side by side."""

import sys
from enum import StrEnum
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
    {"--seed", "--queries", "--neighbors", "--only", "--skip", "--threads", "--device"}
    | {"--budget", "--model"}
)
"""The options whose values the result may repeat: they hold no path and no column name."""


class ModelName(StrEnum):
    """What is trained on each release."""

    logistic = "logistic"
    boosting = "boosting"
    network = "network"


def compare(
    inputs: Annotated[
        list[str],
        typer.Argument(help="Two or more released files, or results of run (.json)."),
    ],
    label: Label = None,
    truth: TruthFile = None,
    truth_column: Annotated[
        str | None,
        option("--truth-column", help="The column of each release that holds the true labels."),
    ] = None,
    original: Original = None,
    synthetic: Annotated[
        list[str] | None,
        option("--synthetic", help="The synthetic rows of double-rr: once, or once for each."),
    ] = None,
    test: Annotated[
        str | None,
        option("--test", help="Rows outside of the releases with true labels: trains and scores."),
    ] = None,
    model: Annotated[
        ModelName, option("--model", help="What is trained on each release for --test.")
    ] = ModelName.logistic,
    id_column: IdColumn = None,
    drop: Drop = None,
    features: Features = None,
    policy: Annotated[
        Path | None, option("--policy", help="What each release may leak (TOML).")
    ] = None,
    html: Annotated[Path | None, option("--html", help="Where to write the page.")] = None,
    json: Annotated[Path | None, option("--json", help="Where to write the result.")] = None,
    force: Annotated[
        bool, option("--force", help="Compare although the data are not the same.")
    ] = False,
    seed: Annotated[
        int | None, option("--seed", help="The seed of all audits (default: from the first file).")
    ] = None,
    queries: Queries = None,
    neighbors: Neighbors = None,
    only: Only = None,
    skip: Skip = None,
    slices: SliceColumns = None,
    public_posterior: PublicPosterior = None,
    public: PublicRows = None,
    canaries: Canaries = None,
    budget: Annotated[
        float | None,
        option("--budget", help="Seconds for the attacks on each release (default: 60)."),
    ] = None,
    threads: Threads = None,
    device: DeviceChoice = Device.auto,
    show_class_names: Annotated[
        bool, option("--show-class-names", help="Name the classes and the label in the page.")
    ] = False,
    inconclusive: Annotated[
        Inconclusive | None,
        option("--inconclusive", help="With --policy: exit as a failure or as a pass."),
    ] = None,
    exit_zero: ExitZero = False,
    quiet: Annotated[bool, option("--quiet", help="Print the sentence only.")] = False,
    _debug: Debug = False,
) -> None:
    """Hold releases of the same data side by side: leakage, attacks, what can be learnt."""
    from ldpaudit.commands.compare.command import compare_releases, worst_verdict
    from ldpaudit.commands.compare.request import CompareRequest, queries_of
    from ldpaudit.commands.outputs import Outputs

    request = CompareRequest(
        inputs=tuple(inputs),
        label=label,
        truth=truth,
        truth_column=truth_column,
        original=original,
        synthetic=tuple(synthetic or ()),
        test=test,
        model=model.value,
        id_column=id_column,
        drop=tuple(drop or ()),
        features=tuple(features) if features else None,
        policy=policy,
        seed=seed,
        queries=queries_of(queries),
        neighbors=neighbors,
        only=tuple(only or ()),
        skip=tuple(skip or ()),
        slices=tuple(slices or ()),
        public_posterior=public_posterior,
        public=public,
        canaries=canaries,
        threads=threads,
        device=device.value,
        budget=budget,
        show_class_names=show_class_names,
        force=force,
        command=_command_without_names(sys.argv),
    )
    outputs = Outputs.beside(inputs[0], "comparison", json, html)
    comparison = compare_releases(request, outputs, quiet=quiet)
    if policy is not None:
        raise typer.Exit(status(worst_verdict(comparison), inconclusive, exit_zero))


def _command_without_names(argv: list[str]) -> str:
    """Return the command with its option names; values could name a path or a column."""
    words, position = ["ldpaudit", "compare"], 2
    while position < len(argv):
        name, equals, value = argv[position].partition("=")
        position += 1
        if not name.startswith("--"):
            words.append("…")
        elif equals:
            words.append(f"{name}={value if name in SHOWN else '…'}")
        else:
            words.append(name)
            if name in SHOWN and position < len(argv):
                words.append(argv[position])
                position += 1
    return " ".join(words)
