"""What the command does with a sweep: files, and a table on standard output."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ldpaudit.commands.mechanism.files import Outputs
from ldpaudit.commands.mechanism.tables import show
from ldpaudit.commands.sweep.outcome import Sweep
from ldpaudit.commands.sweep.page import sweep_page
from ldpaudit.commands.sweep.request import SweepRequest
from ldpaudit.commands.sweep.text import headers, setting_row
from ldpaudit.commands.sweep.work import sweep
from ldpaudit.errors import OutputError
from ldpaudit.terminal import progress_on_terminal, say

_SUFFIXES: Final = (".gz", ".parquet", ".pq", ".csv", ".tsv")


@dataclass(frozen=True)
class Places:
    """Where the result and the page go, as asked for.

    Attributes
    ----------
    json, html : Path or None
    """

    json: Path | None
    html: Path | None


def outputs_of(request: SweepRequest, places: Places) -> Outputs:
    """Return where to write: as asked for, else into --out, else beside the data."""
    if places.json is not None or places.html is not None:
        return Outputs(places.json, places.html)
    if request.out is not None:
        return Outputs(request.out / "sweep.json", request.out / "sweep.html")
    local = "://" not in request.data and not any(mark in request.data for mark in "*?[")
    folder = Path(request.data).parent if local else Path()
    stem = request.data.rstrip("/").rsplit("/", 1)[-1]
    for suffix in _SUFFIXES:
        stem = stem.removesuffix(suffix)
    stem = "".join(letter for letter in stem if letter not in "*?[]") or "data"
    return Outputs(folder / f"{stem}.sweep.json", folder / f"{stem}.sweep.html")


def run_sweep(request: SweepRequest, places: Places, *, quiet: bool = False) -> Sweep:
    """Sweep, write the result and the page, and print the answer."""
    outputs = outputs_of(request, places)
    _check(request, outputs)
    with progress_on_terminal(quiet) as progress:
        found = sweep(request, progress)
    for least in found.least:
        say(least.sentence())
    if not quiet:
        _print(found)
    outputs.write(found.stored(), lambda: sweep_page(found))
    return found


def _check(request: SweepRequest, outputs: Outputs) -> None:
    own = request.out
    inside = own is not None and all(path.parent == own for path in outputs.given())
    if own is not None and own.exists() and not own.is_dir():
        raise OutputError(f"{own.name} is a file; --out needs a folder.")
    if not inside:
        outputs.check(request.paths())


def _print(found: Sweep) -> None:
    show("Every setting", headers(found), [setting_row(s) for s in found.settings])
    for setting in found.settings:
        if setting.failed:
            say(f"  {'not measured':<12} {setting.mechanism}: {setting.failed[0]}")
    if found.reference is not None:
        say(f"\n  learnt from the true labels: {float(found.reference['value']):.4g}")
    for text in found.warnings:
        say(f"  {'warning':<12} {text}")
    say("Simulated draws; nothing was released.")
