"""What was filled in and uploaded for an answer, until the server ends."""

# The browser's word for a file becomes a harmless name of our own; no path comes from a request.

import os
import re
import secrets
import shutil
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

DECLARATION: Final = ".ldpaudit.json"
"""The end of the name of a declaration that lies next to its file."""


def harmless(name: str) -> str:
    """Return a file's own name, without folders and without marks that a path or a shell reads."""
    own = re.split(r"[/\\]", name)[-1]
    kept = re.sub(r"[^\w. ()+-]", "_", own).strip(" .-")
    return kept[-60:].lstrip(" .-") or "file"


@dataclass(eq=False)
class Draft:
    """A form as it was filled in."""

    kind: str
    """What it asks for, a key of ``KINDS``."""
    folder: Path
    """Where its files lie, and where its commands run."""
    files: dict[str, list[str]] = field(default_factory=dict)
    """From the field to its files, as commands name them from the folder."""
    values: dict[str, list[str]] = field(default_factory=dict)
    """From the field to what was typed or chosen."""
    found: dict[str, Any] | None = None
    """From a file's word to what was found in it; None: not looked at yet."""
    error: str = ""
    """Why the last attempt was refused."""
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    _stored: dict[str, str] = field(default_factory=dict, repr=False)
    """From a browser's word for a file to ours."""

    def keep(self, role: str, uploads: Sequence[tuple[str, IO[bytes]]]) -> None:
        """Store what was uploaded for a field, in place of what was there.

        A declaration, or a key, stays next to its file, and joins it if that is there already.
        """
        # A job may read the former files still, so they stay.
        files = [name for name, _ in uploads if not name.endswith(DECLARATION)]
        own, place = [harmless(name) for name in files], 1
        alike = len({*map(str.casefold, own)}) < len(own)
        names = own
        while (alike and names is own) or any(os.path.lexists(self.folder / n) for n in names):
            place += 1
            names = [f"{place}-{f'{at}-' if alike else ''}{name}" for at, name in enumerate(own, 1)]
        stored = dict[str, list[str]]()
        for name, kept in zip(files, names, strict=True):
            stored.setdefault(name, []).append(kept)
        left, every = iter(names), list[str]()
        waiting = {name: iter(own) for name, own in stored.items()}
        for name, _ in uploads:
            if not name.endswith(DECLARATION):
                every.append(next(left))
                continue
            of = name.removesuffix(DECLARATION)
            main = next(waiting.get(of, iter(())), None) or self._stored.get(of, harmless(of))
            every.append(f"{main}{DECLARATION}")
        parts = [self.folder / f".{secrets.token_hex(8)}" for _ in uploads]
        with ExitStack() as undo:  # Half a file is none: the disk may be full.
            for part, (_, content) in zip(parts, uploads, strict=True):
                with part.open("xb") as file:
                    undo.callback(part.unlink, missing_ok=True)
                    shutil.copyfileobj(content, file, 1 << 20)
            for part, name in zip(parts, every, strict=True):
                part.replace(self.folder / name)
        self._stored |= {name: kept[-1] for name, kept in stored.items()}
        before = [] if files else self.files.get(role, [])
        self.files[role] = list(dict.fromkeys([*before, *every]))

    def without(self, role: str) -> None:
        """Forget a field's files, and what was found in them; those of others are kept."""
        gone = self.files.pop(role, [])
        kept = {word for words in self.files.values() for word in words}
        if self.found is not None:
            self.found = {w: one for w, one in self.found.items() if w in kept or w not in gone}

    def words(self, role: str) -> list[str]:
        """Return a field's files as a command names them; declarations next to files are none."""
        names = self.files.get(role, [])
        return [name for name in names if not name.endswith(DECLARATION)] or names

    def names(self, role: str) -> list[str]:
        """Return a field's files as people name them."""
        return [Path(word).name for word in self.files.get(role, ())]

    def given(self, paths: Iterable[str], role: str) -> None:
        """Take files that were named on the command line, where they lie."""
        self.files[role] = [one if "://" in one else str(Path.cwd() / one) for one in paths]
