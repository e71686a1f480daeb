"""Writing files whole or not at all."""

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ldpaudit.errors import OutputError


def write_whole(path: Path, text: str) -> None:
    """Write one text file (UTF-8) whole or not at all.

    Raises
    ------
    ldpaudit.errors.OutputError
        If it cannot be written there; the place is then as it was before.
    """
    write_all({path: text})


def write_all(texts: Mapping[Path, str]) -> None:
    """Write several text files (UTF-8), all of them or none.

    Each text goes to a new file beside its target; when all are on the disk they are renamed. If
    anything fails, an interrupt included, what was there before is there again and nothing else is.

    Raises
    ------
    ldpaudit.errors.OutputError
        If one of them cannot be written.
    """
    replacements = [
        _Replacement(path, text.encode("utf-8", "replace")) for path, text in texts.items()
    ]
    current = None
    try:
        for current in replacements:
            current.prepare()
        for current in replacements:
            current.commit()
    except BaseException as error:
        for replacement in reversed(replacements):
            with contextlib.suppress(OSError):
                replacement.undo()
        if current is not None and isinstance(error, OSError):
            raise OutputError(_reason(current.path, error)) from None
        raise
    for replacement in replacements:
        replacement.clean()


def _reason(path: Path, error: OSError) -> str:
    why = (error.strerror or "the system gives no reason").lower()
    return f"The file {str(path)!r} cannot be written: {why}."


@dataclass
class _Replacement:
    """A new content for one place, in three steps: prepare, commit, clean; undo at any time."""

    path: Path
    content: bytes
    target: Path = field(init=False)
    fresh: Path | None = None
    """The new content beside the target, until it takes its place."""
    former: Path | None = None
    """What was at the target, until the new content is safe."""
    committed: bool = False

    def prepare(self) -> None:
        """Write the content to a new file in the target's folder and force it to the disk."""
        self.target = Path(os.path.realpath(self.path))
        if self.target.exists() and not self.target.is_file():
            raise OSError(errno.EINVAL, "there is something that is not a file")
        self.fresh = self._beside()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(self.fresh, flags, 0o666), "wb") as file:
            file.write(self.content)
            file.flush()
            os.fsync(file.fileno())

    def commit(self) -> None:
        """Put the new file in the target's place."""
        assert self.fresh is not None
        if self.target.exists():
            self.former = self._beside()
            _duplicate(self.target, self.former)
            self.fresh.chmod(self.target.stat().st_mode & 0o7777)
        self.committed = True
        self.fresh.replace(self.target)
        self.fresh = None
        _sync_folder(self.target.parent)

    def undo(self) -> None:
        """Restore what was there before."""
        if self.committed and self.former is not None:
            self.former.replace(self.target)
        elif self.committed and self.fresh is None:
            self.target.unlink(missing_ok=True)
        self.clean()

    def clean(self) -> None:
        """Remove what is left over."""
        for leftover in (self.fresh, self.former):
            if leftover is not None:
                with contextlib.suppress(OSError):
                    leftover.unlink(missing_ok=True)

    def _beside(self) -> Path:
        return self.target.parent / f".ldpaudit-{secrets.token_hex(8)}.tmp"


def _duplicate(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        # Some file systems have no hard links.
        shutil.copy2(source, target)


def _sync_folder(folder: Path) -> None:
    """Force a rename to the disk, where the system can do that for a folder."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
