"""What ``ldpaudit run`` is asked for, and where its results go."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ldpaudit.errors import InputError, OutputError
from ldpaudit.release import Declaration

SUFFIXES = (".gz", ".parquet", ".pq", ".csv", ".tsv")


@dataclass(frozen=True)
class Request:
    """The options of ``ldpaudit run``, checked and ready."""

    release: str
    label: str | None = None
    truth: str | None = None
    truth_column: str | None = None
    original: str | None = None
    synthetic: str | None = None
    held_out: str | None = None
    id_column: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    claim: Declaration | None = None
    channel: Path | None = None
    """The file that the claim was read from, which no output may overwrite."""
    policy: Path | None = None
    seed: int | None = None
    queries: str | None = None
    neighbors: int | None = None
    metric: Literal["l2", "raw", "learned"] = "l2"
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    threads: int | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    show_class_names: bool = False
    slices: tuple[str, ...] = ()
    budget: float | None = None
    public_posterior: str | None = None
    public: str | None = None
    canaries: str | None = None
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


def queries_of(text: str | None) -> int | Literal["all"] | None:
    """Return how many rows look for neighbours, from the text of the option."""
    if text is None or text == "all":
        return text  # type: ignore[return-value]
    if not text.isdecimal():
        raise InputError("--queries must be a number or 'all'.")
    return int(text)


def _inputs(request: Request) -> tuple[str | None, ...]:
    own = (request.release, request.truth, request.original, request.synthetic, request.held_out)
    return (*own, request.public_posterior, request.public, request.canaries)


def check_outputs(paths: ReportPaths, request: Request) -> None:
    """Refuse places that cannot be written to, and places of inputs."""
    given = [path.resolve() for path in paths.given()]
    if len(set(given)) < len(given):
        raise OutputError("The report and the result must be two files.")
    inputs = {Path(p).resolve() for p in (*_inputs(request), request.policy, request.channel) if p}
    for path in given:
        if path in inputs:
            raise OutputError(f"{path.name} is an input of the audit and is not overwritten.")
        if path.is_dir():
            raise OutputError(f"{path.name} is a folder; a report needs a file name.")
        if not path.parent.is_dir():
            raise OutputError(f"The folder for {path.name} does not exist.")
        if not os.access(path.parent, os.W_OK):
            raise OutputError(f"The folder for {path.name} cannot be written to.")
