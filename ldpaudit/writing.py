"""Writing files whole or not at all."""

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from ldpaudit.drafts import draft_of, open_draft, remove_left_over
from ldpaudit.errors import OutputError, quoted
from ldpaudit.interruption import at_end, over, undisturbed


def write_whole(path: Path, text: str) -> None:
    """Write one text file (UTF-8) as :func:`write_all` does."""
    write_all({path: text})


def write_all(texts: Mapping[Path, str], *, last: bool = False) -> None:
    """Write several text files (UTF-8), all of them or none; ``last``: the last of a command.

    Raises
    ------
    ldpaudit.errors.OutputError
        If one cannot be written; every place is then as it was before.
    """
    with WholeFiles(last=last) as files:
        for path, text in texts.items():
            files.add(path).write(text.encode("utf-8", "replace"))


@dataclass
class WholeFiles:
    """Files that are written together; a context manager.

    Each is written under a temporary name next to its target. When the block ends well, all are
    forced to the disk and then take their names. When anything fails, an interruption included,
    what was there before is restored.

    Parameters
    ----------
    overwrite : bool
        Whether files that are there already are replaced.
    last : bool
        Whether they are all that a command still has to write: a signal then comes too late.
    """

    overwrite: bool = True
    last: bool = False
    _forget: Callable[[], object] = field(init=False)
    _parts: list["PartFile"] = field(default_factory=list)

    def add(
        self, path: Path, *, private: bool = False, overwrite: bool | None = None
    ) -> "PartFile":
        """Start a file.

        Parameters
        ----------
        path : Path
            In an existing folder. Of a symbolic link the file that it names is replaced.
        private : bool
            Whether nobody but its owner may read it (mode 0600), from the first byte on.
        overwrite : bool, optional
            Whether it may be replaced; default: as for all files.

        Raises
        ------
        OutputError
            If the file is there already and may not be replaced, or cannot be written.
        """
        may = self.overwrite if overwrite is None else overwrite
        part = PartFile(path, private=private, overwrite=may)
        self._parts.append(part)  # Before the file is there: an interruption comes any time.
        part.open()
        return part

    def __enter__(self) -> Self:
        self._forget = at_end(self._remove)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                for part in self._parts:
                    part.complete()
                with undisturbed():
                    self._publish()
        finally:
            with undisturbed():
                for part in self._parts:
                    part.clean()
                self._forget()

    def _publish(self) -> None:
        """Let the files take their names, in as little time as possible, or none."""
        try:
            for part in self._parts:
                part.check_free()  # Another program may have written there meanwhile.
            for part in self._parts:
                part.keep_former()
            for part in self._parts:
                part.commit()
            for part in self._parts:
                part.settle()
        except BaseException:
            for part in reversed(self._parts):
                with contextlib.suppress(OSError):
                    part.undo()
            raise
        if self.last and self._parts:
            over()

    def _remove(self) -> None:
        for part in self._parts:
            part.remove()


@dataclass
class PartFile:
    """A file that is being written: open, write, complete, keep_former, commit, settle, clean.

    ``undo`` and ``remove`` may come at any time.
    """

    path: Path
    private: bool = False
    overwrite: bool = True
    finish: Callable[[], None] | None = None
    """Writes the end of the file, where its format has one; called once, at the latest by clean."""
    stream: IO[bytes] = field(init=False)
    _target: Path = field(init=False)
    _fresh: Path | None = None
    """The new content beside the target, until it takes its place."""
    _former: Path | None = None
    """What was at the target, until the new content is safe."""
    _committed: bool = False

    def open(self) -> None:
        """Start a new file in the target's folder."""
        self.check_free()
        with self.writing():
            self._target = Path(os.path.realpath(self.path))
            if self._target.exists() and not self._target.is_file():
                raise OSError(errno.EINVAL, "there is something that is not a file")
            remove_left_over(self._target.parent)
            self._fresh = draft_of(self._target)
            mode = 0o600 if self.private else 0o666
            self.stream = os.fdopen(open_draft(self._fresh, mode), "wb")

    def write(self, content: bytes) -> None:
        """Append bytes."""
        with self.writing():
            self.stream.write(content)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Turn any failure in the block into one line that names this file."""
        try:
            yield
        except OutputError:
            raise
        except Exception as error:
            raise _unwritable(self.path, error) from None

    def check_free(self) -> None:
        """Refuse to replace a file unless that is allowed."""
        with self.writing():
            if not self.overwrite and os.path.lexists(self.path):
                shown = quoted(self.path.name)
                raise OutputError(f"{shown} exists already and is left as it is.")

    def complete(self) -> None:
        """Write the end of the file and force it to the disk."""
        with self.writing():
            self._finish()
            self.stream.flush()
            os.fsync(self.stream.fileno())

    def keep_former(self) -> None:
        """Keep what is at the target, until the new file is safe there."""
        assert self._fresh is not None
        with self.writing():
            if self._target.exists():
                self._former = draft_of(self._target, former=True)
                _duplicate(self._target, self._former)
                if not self.private:
                    self._fresh.chmod(self._target.stat().st_mode & 0o7777)

    def commit(self) -> None:
        """Put the new file in the target's place."""
        assert self._fresh is not None
        with self.writing():
            self._committed = True
            self._fresh.replace(self._target)
            self._fresh = None

    def settle(self) -> None:
        """Force the new name to the disk."""
        with self.writing():
            _sync_folder(self._target.parent)

    def undo(self) -> None:
        """Restore what was there before."""
        if self._committed and self._former is not None:
            self._former.replace(self._target)
        elif self._committed and self._fresh is None:
            self._target.unlink(missing_ok=True)

    def clean(self) -> None:
        """Remove what is left over."""
        with contextlib.suppress(Exception):
            self._finish()
        with contextlib.suppress(OSError, AttributeError):
            self.stream.close()
        self.remove()
        if self._committed:
            remove_left_over(self._target.parent, self._target)

    def remove(self) -> None:
        """Remove what has a temporary name."""
        for leftover in (self._fresh, self._former):
            if leftover is not None:
                with contextlib.suppress(OSError):
                    leftover.unlink(missing_ok=True)

    def _finish(self) -> None:
        finish, self.finish = self.finish, None
        if finish is not None:
            finish()


def _unwritable(path: Path, error: Exception) -> OutputError:
    shown = quoted(path.name)
    if not isinstance(error, OSError):
        # The text of a library's error may hold a cell.
        return OutputError(f"The file {shown} cannot be written ({type(error).__name__}).")
    why = (error.strerror or "the system gives no reason").lower()
    return OutputError(f"The file {shown} cannot be written: {why}.")


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
