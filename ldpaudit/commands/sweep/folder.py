"""The folder of a sweep: digests of its options, and one file for each finished point."""

import hmac
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from ldpaudit import __version__
from ldpaudit.commands.sweep.grid import Point
from ldpaudit.commands.sweep.request import SweepRequest
from ldpaudit.datasets.formats.locations import locate
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError, OutputError
from ldpaudit.result import AuditResult, Decision, Estimate, Verdict
from ldpaudit.work.documents import as_json, parse_json, read_document
from ldpaudit.work.files import WholeFiles
from ldpaudit.work.limits import DOCUMENT_BYTES

_FORMAT: Final = "ldpaudit-sweep"
_MANIFEST: Final = "manifest"
# The words for parts of a manifest; any other part is an option.
_WHAT: Final = {
    "version": "version of ldpaudit",
    "data": "data",
    "policy": "policy",
}
# The options that may name files besides the data.
FILES: Final = ("test", "synthetic", "generator_data", "prior")


def manifest(request: SweepRequest, seed: int, policy_sha256: str | None) -> dict[str, Any]:
    """Return everything that the numbers of a sweep depend on; it stays in memory.

    Files are known by their digest; the number of processes and the memory change no number.
    """
    options = {
        name: getattr(request, name)
        for name in (
            *("label", "labels", "generator", "test_share", "learner", "repeats"),
            *("queries", "neighbors", "metric", "exact"),
            *("separator", "decimal", "encoding", "sheet", "header"),
        )
    }
    lists = {name: list(getattr(request, name)) for name in ("mechanisms", "drop", "only", "skip")}
    files = {name: _digest(getattr(request, name)) for name in FILES}
    return {
        "version": __version__,
        "data": _digest(request.data),
        "policy": policy_sha256,
        "parameter": request.grid.parameter,
        "values": list(request.grid.values),
        "threads": request.threads or 1,
        "device": request.device,
        "seed": seed,
        **options,
        **lists,
        **files,
    }


def _digest(path: str | Path | None) -> str | None:
    return None if path is None else locate(path).sha256()


def _digests(key: str, options: dict[str, Any]) -> dict[str, str]:
    """Return a digest of each option, which nobody can make without the key."""
    texts = {name: as_json({name: value}).encode() for name, value in options.items()}
    return {name: hmac.digest(key.encode(), text, "sha256").hex() for name, text in texts.items()}


class _Kept(BaseModel):
    """What a point's file must hold, as far as it is read again."""

    verdict: Verdict
    decision: Decision
    sentence: str
    test: Estimate
    correction: str
    result: AuditResult


def is_finished(content: dict[str, Any] | None) -> bool:
    """Return whether a point's file holds all of it; if not, the point is measured again."""
    try:
        _Kept.model_validate(content)
    except ValidationError:
        return False
    return True


@dataclass(frozen=True)
class SweepFolder:
    """The folder where the points of a sweep are kept; its files can be read by its owner only.

    Of its options, the data among them, it holds digests made with a random key: without the key
    no guess of a true label or of a column's name can be tested against them.
    """

    path: Path

    @property
    def generator(self) -> Path:
        """The fitted generator, readable by its owner only."""
        return self.path / "generator.npz"

    def open(self, options: dict[str, Any], *, resume: bool) -> None:
        """Start the folder, or continue it.

        Raises
        ------
        InputError
            If it holds another sweep, or is not to be continued.
        OutputError
            If it cannot be written to.
        """
        shown = quoted(self.path.name)
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._points.mkdir(mode=0o700, exist_ok=True)
            entries = [e for e in self.path.iterdir() if not e.name.startswith(".")]
            started = [e for e in entries if e != self._points or any(self._points.glob("*.json"))]
        except OSError:
            raise OutputError(f"The folder {shown} cannot be made or written to.") from None
        if started and not resume:
            raise InputError(
                f"The folder {shown} is not empty; give another, or go on with --resume."
            )
        if started:
            self._check(options)
        else:
            key = secrets.token_hex(32)
            content = {"format": _FORMAT, "key": key, "digests": _digests(key, options)}
            self.keep_part(_MANIFEST, content)

    def _check(self, options: dict[str, Any]) -> None:
        shown, stored = quoted(self.path.name), self.kept_part(_MANIFEST)
        if stored is None or stored.get("format") != _FORMAT:
            raise InputError(f"The folder {shown} holds something that is no sweep.")
        known, wanted = stored.get("digests"), _digests(str(stored.get("key")), options)
        known = known if isinstance(known, dict) else {}
        other = [name for name in wanted if known.get(name) != wanted[name]]
        if other:
            # An earlier version stored fewer options, or no digests of them.
            first = other[0] if other[0] in known else "version"
            what = _WHAT.get(first, f"--{first.replace('_', '-')}")
            raise InputError(
                f"The folder {shown} holds a sweep with another {what}; give another folder."
            )

    def keep(self, point: Point, content: dict[str, Any]) -> None:
        """Write a point's file, whole or not at all."""
        self.keep_part(f"points/{point.key}", content)

    def kept(self, point: Point) -> dict[str, Any] | None:
        """Return what a point's file holds; None without a whole file."""
        return self.kept_part(f"points/{point.key}")

    def keep_part(self, name: str, content: dict[str, Any]) -> None:
        """Write what all points share."""
        with WholeFiles() as files:
            part = files.add(self.path / f"{name}.json", private=True)
            part.write(as_json(content).encode())

    def kept_part(self, name: str) -> dict[str, Any] | None:
        """Return what all points share; None without a whole file."""
        try:
            text = read_document(self.path / f"{name}.json", DOCUMENT_BYTES)
            content = parse_json(text, name, "It is incomplete.")
        except (OSError, ValueError):
            return None
        return content if isinstance(content, dict) else None

    @property
    def _points(self) -> Path:
        return self.path / "points"
