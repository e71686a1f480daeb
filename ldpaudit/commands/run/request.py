"""What ``ldpaudit run`` is asked for, and where its results go."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ldpaudit.errors import OutputError
from ldpaudit.options import Argument, AuditOptions, input_files

SUFFIXES = (".gz", ".parquet", ".pq", ".csv", ".tsv")


@dataclass(frozen=True, kw_only=True)
class RunRequest(AuditOptions):
    """The options of ``ldpaudit run``: those of an audit, of one released file."""

    release: Annotated[
        str, Argument("The released file: Parquet, CSV or CSV.gz.", file=True)
    ]
    command: str = "ldpaudit run …"


@dataclass(frozen=True)
class ReportPaths:
    """Where the report and the result go."""

    html: Path | None
    json: Path | None

    def given(self) -> tuple[Path, ...]:
        """Return the paths that are asked for."""
        return tuple(path for path in (self.html, self.json) if path is not None)


def report_paths(release: str, html: Path | None, json: Path | None) -> ReportPaths:
    """Return where to write: as asked for, else beside the release (a URL's: in this folder)."""
    if html is not None or json is not None:
        return ReportPaths(html, json)
    local = "://" not in release and not any(mark in release for mark in "*?[")
    folder = Path(release).parent if local else Path()
    stem = release.rstrip("/").rsplit("/", 1)[-1]
    for suffix in SUFFIXES:
        stem = stem.removesuffix(suffix)
    stem = "".join(letter for letter in stem if letter not in "*?[]") or "release"
    return ReportPaths(folder / f"{stem}.audit.html", folder / f"{stem}.audit.json")


def check_outputs(paths: ReportPaths, request: RunRequest) -> None:
    """Refuse places that cannot be written to, and places of inputs."""
    given = [path.resolve() for path in paths.given()]
    if len(set(given)) < len(given):
        raise OutputError("The report and the result must be two files.")
    inputs = {Path(file).resolve() for file in input_files(request)}
    for path in given:
        if path in inputs:
            raise OutputError(f"{path.name} is an input of the audit and is not overwritten.")
        if path.is_dir():
            raise OutputError(f"{path.name} is a folder; a report needs a file name.")
        if not path.parent.is_dir():
            raise OutputError(f"The folder for {path.name} does not exist.")
        if not os.access(path.parent, os.W_OK):
            raise OutputError(f"The folder for {path.name} cannot be written to.")
