"""Which finished parts belong to an audit: those of the same files, options, seed and versions."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from ldpaudit.errors import InputError, quoted
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.options import AuditOptions, Option, declared
from ldpaudit.plugins import given
from ldpaudit.release import Release
from ldpaudit.running.finished import Finished, private_folder

_MANIFEST: Final = "manifest"
_CHANGES_NO_NUMBER: Final = frozenset({"cluster", "memory", "policy", "resume", "timeout"})
"""Options that are not compared; of the policy its content is."""
_WORDS: Final = {"release": "released file", "versions": "version of ldpaudit or its libraries"}


def finished_parts(
    folder: Path,
    columns: Sequence[Release],
    place: Any,
    options: AuditOptions,
    policy: Policy | None,
    **other: Any,
) -> Finished:
    """Return the finished parts of an audit, kept in a folder of its own within ``folder``.

    The released file is known by its digest. Of the other files, which may hold true labels, and
    of a release with true labels in it, nothing that depends on their content is kept, so that no
    guess of a label can be tested: they are known by place on the disk and time of change.

    Parameters
    ----------
    folder : Path
        May hold parts of several audits. Readable by its owner alone.
    columns : sequence of Release
        The private columns as they were read, each with its claim.
    place : str, Path, or several of them
        Where they were read from.
    options : AuditOptions
    policy : Policy or None
    other
        What else the numbers depend on: the seed, the number of threads, versions.

    Raises
    ------
    InputError
        If the release or something beside it is not a file.
    OutputError
        If the folder cannot be used.
    """
    said = _digests(columns, options, policy, other | {"release": _released(columns, place)})
    name = _digest(said)[:32]
    tell = getattr(options.progress, "remark", lambda _: None)
    finished = Finished(folder / name, tell)
    new = not (folder / name).exists()
    private_folder(folder / name)
    if new:
        _remark_others(folder, name, said, tell)
    finished.put(_MANIFEST, said)
    return finished


def _digests(
    columns: Sequence[Release], options: AuditOptions, policy: Policy | None, other: dict[str, Any]
) -> dict[str, str]:
    """Return a digest of each thing that numbers depend on, by its name."""
    claims = [column.declaration for column in columns]
    known = {
        **other,
        "claim": [None if claim is None else [claim.name, claim.parameters] for claim in claims],
        "policy": (policy or default_policy()).model_dump(mode="json"),
    }
    for field in fields(options):
        option = declared(field.type)
        if isinstance(option, Option) and field.name not in _CHANGES_NO_NUMBER | known.keys():
            value = getattr(options, field.name)
            name = option.long(field.name)
            if name in other:
                continue
            known[name] = _stamps(name, value) if option.file else value
            if field.name == "attacks":
                known[name] = [given("attack", str(one), str(one)).model_dump() for one in value]
    return {name: _digest(value) for name, value in known.items()}


def _released(columns: Sequence[Release], place: Any) -> Any:
    """Return by what the released files are known again."""
    if any(column.holds_truth for column in columns):
        return _stamps("the release", place)
    if any(column.sha256 is None for column in columns):
        raise InputError("--resume needs a released file; a table in memory cannot be told again.")
    return sorted({str(column.sha256) for column in columns})


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return list(value) if isinstance(value, set | frozenset | tuple) else str(value)


def _stamps(option: str, value: Any) -> Any:
    """Return places and times of change of the files that an option names; never their content."""
    if value is None:
        return None
    if isinstance(value, tuple | list):
        return [_stamps(option, one) for one in value]
    if not isinstance(value, str | Path):
        raise InputError(f"--resume needs files; what is given for {option} is in memory.")
    from ldpaudit.datasets.formats.locations import locate

    place = locate(value)
    stamps = place.stamp()
    if any(time is None for _, time, *_ in stamps):
        raise InputError(
            f"--resume needs to know when {quoted(place.name)} was changed, and its place does not "
            "say; copy it to a local file."
        )
    return stamps


def _remark_others(
    folder: Path, name: str, said: dict[str, str], tell: Callable[[str], None]
) -> None:
    """Say in one line that the folder holds parts of other audits, which are left alone."""
    others = sorted(p for p in folder.iterdir() if p.name != name and any(p.glob("*.part")))
    if not others:
        return
    there = Finished(others[0]).get(_MANIFEST)
    there = there if isinstance(there, dict) else {}
    what = next((key for key, digest in said.items() if there.get(key) != digest), "")
    because = f", with another {_WORDS.get(what, what)}" if there and what else ""
    tell(
        f"The folder of --resume holds parts of another audit{because}; they are not used. They "
        "are confidential: remove them when they are not needed any more."
    )
