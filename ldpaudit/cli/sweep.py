"""``ldpaudit sweep``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ldpaudit.cli.options import Debug, Device, Generator, option

_LABELS, _ROWS, _AUDIT = "Labels and prior", "Rows", "Audit and learner"
_MACHINE, _FILES = "Machine", "Files"


class LearnerName(StrEnum):
    """What learns from each simulated release."""

    linear = "linear"
    network = "network"


def sweep(
    data: Annotated[str, typer.Argument(help="The table with the true labels: Parquet or CSV.")],
    mechanism: Annotated[
        list[str],
        option("--mechanism", help="A mechanism, such as rr or double-rr (repeatable)."),
    ],
    label: Annotated[str, option("--label", help="The true label's column.")] = "label",
    lambda_: Annotated[
        str | None, option("--lambda", help="The grid of λ: V1,V2,… or LO:HI:N.")
    ] = None,
    epsilon: Annotated[
        str | None, option("--epsilon", help="The grid of ε in nats, instead of --lambda.")
    ] = None,
    policy: Annotated[
        Path | None, option("--policy", help="What a release may leak (TOML).")
    ] = None,
    repeats: Annotated[int, option("--repeats", help="Draws of every setting.")] = 1,
    labels: Annotated[
        str | None,
        option("--labels", help="The range of numeric labels, LO:HI or LO:HI:STEP.", panel=_LABELS),
    ] = None,
    prior: Annotated[
        Path | None,
        option("--prior", help="A public prior: CSV label,probability.", panel=_LABELS),
    ] = None,
    drop: Annotated[
        list[str] | None,
        option("--drop", help="A column that is not released (repeatable).", panel=_ROWS),
    ] = None,
    synthetic: Annotated[
        str | None,
        option("--synthetic", help="Synthetic rows with a label column.", panel=_ROWS),
    ] = None,
    generator: Annotated[
        Generator | None,
        option("--generator", help="What makes synthetic rows instead.", panel=_ROWS),
    ] = None,
    generator_data: Annotated[
        str | None,
        option(
            "--generator-data",
            help="A public labelled table to train it on (default: the private rows).",
            panel=_ROWS,
        ),
    ] = None,
    test: Annotated[
        str | None,
        option("--test", help="Rows with true labels to test learners on.", panel=_ROWS),
    ] = None,
    test_share: Annotated[
        float,
        option("--test-share", help="Without --test, the share of the data held out.", panel=_ROWS),
    ] = 0.2,
    learner: Annotated[
        LearnerName, option("--learner", help="What learns from each release.", panel=_AUDIT)
    ] = LearnerName.linear,
    only: Annotated[
        list[str] | None, option("--only", help="Run this audit only (repeatable).", panel=_AUDIT)
    ] = None,
    skip: Annotated[
        list[str] | None, option("--skip", help="Leave this audit out (repeatable).", panel=_AUDIT)
    ] = None,
    budget: Annotated[
        float | None,
        option("--budget", help="Seconds for the attacks of a draw (default: 60).", panel=_AUDIT),
    ] = None,
    seed: Annotated[
        int | None,
        option("--seed", help="The seed (default: derived from the data).", panel=_AUDIT),
    ] = None,
    processes: Annotated[
        int | None,
        option("--processes", help="Processes at most (default: processors).", panel=_MACHINE),
    ] = None,
    threads: Annotated[
        int | None, option("--threads", help="Threads of each (default: 1).", panel=_MACHINE)
    ] = None,
    memory: Annotated[
        float | None,
        option(
            "--memory", help="GiB for all processes (default: ¾ of what is free).", panel=_MACHINE
        ),
    ] = None,
    device: Annotated[
        Device, option("--device", help="Where torch models run.", panel=_MACHINE)
    ] = Device.auto,
    out: Annotated[
        Path | None, option("--out", help="The folder that keeps every draw.", panel=_FILES)
    ] = None,
    resume: Annotated[
        bool, option("--resume", help="Go on with the sweep in --out.", panel=_FILES)
    ] = False,
    json: Annotated[
        Path | None, option("--json", help="Where to write the result.", panel=_FILES)
    ] = None,
    html: Annotated[
        Path | None, option("--html", help="Where to write the page.", panel=_FILES)
    ] = None,
    quiet: Annotated[bool, option("--quiet", help="Print the answer only.")] = False,
    _debug: Debug = False,
) -> None:
    """Before releasing: simulate, audit and learn over a grid, and find the least noise."""
    from ldpaudit.commands.outputs import Outputs
    from ldpaudit.commands.sweep.command import run_sweep
    from ldpaudit.commands.sweep.grid import parse_grid
    from ldpaudit.commands.sweep.request import SweepRequest, full_names
    from ldpaudit.errors import InputError

    if (lambda_ is None) == (epsilon is None):
        raise InputError("A sweep must be given one grid: --lambda or --epsilon.")
    grid = (
        parse_grid("epsilon", epsilon or "") if lambda_ is None else parse_grid("lambda", lambda_)
    )
    request = SweepRequest(
        data=data,
        label=label,
        mechanisms=full_names(tuple(mechanism)),
        grid=grid,
        labels=labels,
        prior=prior,
        synthetic=synthetic,
        generator=None if generator is None else generator.value,
        generator_data=generator_data,
        drop=tuple(drop or ()),
        test=test,
        test_share=test_share,
        learner=learner.value,
        policy=policy,
        only=tuple(only or ()),
        skip=tuple(skip or ()),
        budget=budget,
        repeats=repeats,
        seed=seed,
        threads=threads,
        processes=processes,
        memory=memory,
        device=device.value,
        out=out,
        resume=resume,
    )
    if out is not None and json is None and html is None:
        json, html = out / "sweep.json", out / "sweep.html"
    run_sweep(request, Outputs.beside(data, "sweep", json, html), quiet=quiet)
