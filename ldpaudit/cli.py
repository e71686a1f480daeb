"""The command line: a thin shell over :func:`ldpaudit.audit`.

Exit status: 0 no violation found, 1 a violation, 2 could not run, 3 inconclusive.
"""

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ldpaudit import __version__

EXIT = {"pass": 0, "fail": 1, "inconclusive": 3}
COULD_NOT_RUN = 2
INTERRUPTED = 130
"""What typer makes of Ctrl-C."""
SHOWN = frozenset(
    {"--epsilon", "--lambda", "--mechanism", "--seed", "--queries", "--neighbors", "--metric"}
    | {"--only", "--skip", "--threads", "--device"}
)
"""The options whose values the result may repeat: they hold no path and no column name."""

app = typer.Typer(
    name="ldpaudit",
    help="How much does a dataset with privatized labels give away about each person's label?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
policy_app = typer.Typer(help="Check, explain or start a policy file.", no_args_is_help=True)
app.add_typer(policy_app, name="policy")


class Inconclusive(StrEnum):
    """How an inconclusive audit exits."""

    fail = "fail"
    passed = "pass"


class Metric(StrEnum):
    """The space in which neighbours are near."""

    l2 = "l2"
    raw = "raw"
    learned = "learned"


class Device(StrEnum):
    """Where torch models run."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


def _version(shown: bool) -> None:
    if shown:
        typer.echo(f"ldpaudit {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def _option(*names: str, help: str, panel: str | None = None, hidden: bool = False) -> Any:
    """Return an option with its LDPAUDIT_… environment twin."""
    long = names[0].split("/")[0]
    twin = "LDPAUDIT_" + long.removeprefix("--").replace("-", "_").upper()
    return typer.Option(
        *names, help=help, envvar=twin, show_envvar=False, rich_help_panel=panel, hidden=hidden
    )


@app.command()
def run(
    release: Annotated[str, typer.Argument(help="The released file: Parquet, CSV or CSV.gz.")],
    label: Annotated[
        str | None,
        _option("--label", help="The released label's column (default: as declared, or 'label')."),
    ] = None,
    truth: Annotated[
        str | None, _option("--truth", help="A file with the true labels, in the same row order.")
    ] = None,
    truth_column: Annotated[
        str | None,
        _option("--truth-column", help="The column of the release that holds the true labels."),
    ] = None,
    id_column: Annotated[
        str | None, _option("--id", help="The column on which --truth is joined.")
    ] = None,
    drop: Annotated[
        list[str] | None, _option("--drop", help="A column that is no feature (repeatable).")
    ] = None,
    features: Annotated[
        list[str] | None,
        _option("--features", help="A column that is a feature (repeatable; default: the rest)."),
    ] = None,
    mechanism: Annotated[
        str | None,
        _option("--mechanism", help="The claim: randomized-response, channel or unknown."),
    ] = None,
    epsilon: Annotated[float | None, _option("--epsilon", help="The claimed ε, in nats.")] = None,
    lambda_: Annotated[
        float | None,
        _option("--lambda", help="The claimed λ: the chance of a label drawn anew from all."),
    ] = None,
    channel: Annotated[
        Path | None,
        _option("--channel", help="The claimed channel as CSV: rows labels, columns outputs."),
    ] = None,
    policy: Annotated[
        Path | None, _option("--policy", help="What the release may leak (TOML).")
    ] = None,
    html: Annotated[Path | None, _option("--html", help="Where to write the report.")] = None,
    json: Annotated[Path | None, _option("--json", help="Where to write the result.")] = None,
    seed: Annotated[
        int | None, _option("--seed", help="The seed (default: derived from the file).")
    ] = None,
    queries: Annotated[
        str | None, _option("--queries", help="Rows that look for neighbours: a number or 'all'.")
    ] = None,
    neighbors: Annotated[
        int | None, _option("--neighbors", help="How many neighbours (default: adapts to n).")
    ] = None,
    metric: Annotated[
        Metric, _option("--metric", help="The space in which neighbours are near.")
    ] = Metric.l2,
    only: Annotated[
        list[str] | None, _option("--only", help="Run this audit only (repeatable).")
    ] = None,
    skip: Annotated[
        list[str] | None, _option("--skip", help="Leave this audit out (repeatable).")
    ] = None,
    threads: Annotated[
        int | None, _option("--threads", help="Processors to use (default: all there are).")
    ] = None,
    device: Annotated[Device, _option("--device", help="Where torch models run.")] = Device.auto,
    show_class_names: Annotated[
        bool, _option("--show-class-names", help="Name the classes and the label in the report.")
    ] = False,
    inconclusive: Annotated[
        Inconclusive | None,
        _option("--inconclusive", help="Exit as a failure or as a pass when inconclusive."),
    ] = None,
    exit_zero: Annotated[
        bool, _option("--exit-zero", help="Exit 0 whatever is found, unless it could not run.")
    ] = False,
    quiet: Annotated[bool, _option("--quiet", help="Print the verdict only.")] = False,
    _debug: Annotated[bool, _option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Audit a released dataset and write the report."""
    from ldpaudit.running import Request, audit_release, claim_from_options, report_paths

    paths = report_paths(release, html, json)
    request = Request(
        release=release,
        label=label,
        truth=truth,
        truth_column=truth_column,
        id_column=id_column,
        drop=tuple(drop or ()),
        features=tuple(features) if features else None,
        claim=claim_from_options(mechanism, epsilon, lambda_, channel),
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
        command=_command_without_names(sys.argv),
    )
    result = audit_release(request, paths, quiet=quiet)
    raise typer.Exit(_status(result.verdict, inconclusive, exit_zero))


@app.command()
def demo(
    folder: Annotated[
        Path, _option("--folder", help="Where to put the releases and the reports.")
    ] = Path("ldpaudit-demo"),
    seed: Annotated[int, _option("--seed", help="The seed of the releases.")] = 20260101,
    _debug: Annotated[bool, _option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Audit two releases of an embedded sample: an honest one and one that leaks too much."""
    from ldpaudit.running import run_demo

    raise typer.Exit(run_demo(folder, seed))


@app.command()
def report(
    result: Annotated[Path, typer.Argument(help="A stored result (.json).")],
    html: Annotated[Path | None, _option("--html", help="Where to write the report.")] = None,
    _debug: Annotated[bool, _option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Render a stored result again."""
    from ldpaudit.running import render_again

    typer.echo(render_again(result, html))


@policy_app.command("check")
def policy_check(
    file: Annotated[Path, typer.Argument(help="The policy file.")],
    _debug: Annotated[bool, _option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Validate a policy without any data."""
    from ldpaudit.policy import load_policy

    load_policy(file)
    typer.echo(f"{file.name}: a valid policy.")


@policy_app.command("explain")
def policy_explain(
    check: Annotated[str, typer.Argument(help="The check's id.")],
    _debug: Annotated[bool, _option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Explain a check: what it compares, and when it fails."""
    from ldpaudit.policy import explain

    typer.echo(explain(check))


@policy_app.command("init")
def policy_init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = Path("ldpaudit.toml"),
    _debug: Annotated[bool, _option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Write a starter policy, never over a file that exists."""
    from ldpaudit.errors import OutputError
    from ldpaudit.policy import STARTER
    from ldpaudit.reports import write_whole

    if file.exists():
        raise OutputError(f"{file.name} exists already and is left as it is.")
    write_whole(file, STARTER)
    typer.echo(f"Wrote {file.name}.")


def _status(verdict: str, inconclusive: Inconclusive | None, exit_zero: bool) -> int:
    if verdict == "inconclusive" and inconclusive is not None:
        verdict = inconclusive.value
    return 0 if exit_zero else EXIT[verdict]


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


def main() -> None:
    """Run the command line; every error becomes one line on stderr and exit status 2."""
    # Threads that wait must not spin: on a shared machine that costs more than the work itself.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    debug = "--debug" in sys.argv or bool(os.environ.get("LDPAUDIT_DEBUG"))
    try:
        status = app(standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        _stop("Interrupted; nothing was written.", debug)
    except Exception as error:
        _stop(_one_line(error), debug)
    else:
        if status == INTERRUPTED:
            _stop("Interrupted; nothing was written.", debug)
        sys.exit(status if isinstance(status, int) else 0)


def _one_line(error: Exception) -> str:
    from ldpaudit.errors import LdpAuditError

    if isinstance(error, LdpAuditError):
        return " ".join(str(error).split())
    if hasattr(error, "format_message"):  # typer's own usage errors
        return " ".join(str(error.format_message()).split())
    if isinstance(error, MemoryError):
        return "The audit needs more memory than there is; try fewer --queries or --neighbors."
    if isinstance(error, OSError) and error.strerror:
        return f"A file could not be used: {error.strerror}."
    # The text of a foreign exception may hold data, so only its type is told.
    return f"Internal fault ({type(error).__name__}); run again with --debug and report it."


def _stop(message: str, debug: bool) -> None:
    if debug:
        import traceback

        traceback.print_exc()
    typer.echo(f"ldpaudit: {message}", err=True)
    sys.exit(COULD_NOT_RUN)


if __name__ == "__main__":
    main()
