"""Writing files whole or not at all."""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from ldpaudit.errors import OutputError, quoted
from ldpaudit.files.drafts import draft_of, open_draft, remove_left_over, usual_mode
from ldpaudit.interruption import at_end, over, tell, undisturbed


def write_whole(path: Path, text: str, *, private: bool = False) -> None:
    """Write one text file (UTF-8) as :func:`write_all` does."""
    write_all({path: text}, private=private)


def write_all(texts: Mapping[Path, str], *, last: bool = False, private: bool = False) -> None:
    """Write several text files (UTF-8), all of them or none.

    ``last``: the last of a command; ``private``: for nobody but their owner (mode 0600).

    Raises
    ------
    ldpaudit.errors.OutputError
        If one cannot be written; every place is then as it was before.
    """
    with WholeFiles(last=last) as files:
        for path, text in texts.items():
            files.add(path, private=private).write(text.encode("utf-8", "replace"))


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
            Whether nobody but its owner may ever read it (mode 0600); others only when complete.
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
                for name in [left.name for part in self._parts for left in part.left_over]:
                    tell(f"The draft {quoted(name)} cannot be removed: remove it.")

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
        except BaseException as error:
            left = list(filter(None, [part.undo() for part in reversed(self._parts)]))
            if not left:
                raise
            # The text of any other error may hold a path.
            why = f"The files cannot be written ({type(error).__name__})."
            why = str(error) if isinstance(error, OutputError) else why
            raise OutputError(" ".join([why, *left])) from None
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
    _known: os.stat_result = field(init=False)
    """By which the new file is told from the former one."""
    _stuck: bool = False
    """Whether it could not be taken back: what is kept of former files stays."""

    def open(self) -> None:
        """Start a new file in the target's folder."""
        self.check_free()
        with self.writing():
            self._target = place_of(self.path)
            remove_left_over(self._target.parent)
            self._fresh = draft_of(self._target)
            # Its owner's alone until it takes its name: what is refused at the end may tell labels.
            self.stream = os.fdopen(open_draft(self._fresh, 0o600), "wb")
            self._known = os.fstat(self.stream.fileno())

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
                known = self._former is not None
                mode = self._target.stat().st_mode & 0o7777 if known else usual_mode()
                with contextlib.suppress(PermissionError):  # Some file systems have one mode only.
                    self._fresh.chmod(mode)

    def commit(self) -> None:
        """Put the new file in the target's place."""
        assert self._fresh is not None
        with self.writing():
            # A second name takes the place of nothing, whatever was put there meanwhile.
            if self.overwrite or not _linked(self._fresh, self._target):
                self._fresh.replace(self._target)

    def settle(self) -> None:
        """Force the new name to the disk."""
        with self.writing():
            _sync_folder(self._target.parent)

    def undo(self) -> str:
        """Restore what was there before; return in words what could not be restored."""
        if not self._in_place():
            return ""
        former, shown = self._former, quoted(self.path.name)
        try:
            if former is None:
                _twice(self._target.unlink)
                return ""
            _twice(partial(former.replace, self._target))
        except OSError:
            self._stuck = True
            if former is None:
                return f"Nor can {shown} be taken back: it is there, new and whole."
            self._former = None  # It is all that there is of it.
            return (
                f"Nor can {shown} be taken back: it is the new one, and what was there before "
                f"lies beside it as {quoted(former.name)}."
            )
        return ""

    def _in_place(self) -> bool:
        """Return whether the new file has the target's name; in doubt it has."""
        try:
            return os.path.samestat(self._known, self._target.lstat())
        except (AttributeError, FileNotFoundError):
            return False
        except OSError:
            return True

    def clean(self) -> None:
        """Remove what is left over."""
        with contextlib.suppress(Exception):
            self._finish()
        with contextlib.suppress(OSError, AttributeError):
            self.stream.close()
        self.remove()
        if self._in_place() and not self._stuck:
            remove_left_over(self._target.parent, self._target)

    def remove(self) -> None:
        """Remove what has a temporary name."""
        for leftover in (self._fresh, self._former):
            if leftover is not None:
                with contextlib.suppress(OSError):
                    _twice(partial(leftover.unlink, missing_ok=True))

    @property
    def left_over(self) -> list[Path]:
        """What has a temporary name still."""
        return [path for path in (self._fresh, self._former) if path and os.path.lexists(path)]

    def _finish(self) -> None:
        finish, self.finish = self.finish, None
        if finish is not None:
            finish()


def _unwritable(path: Path, error: Exception) -> OutputError:
    shown = quoted(path.name or str(path))
    if not isinstance(error, OSError):
        # The text of a library's error may hold a cell.
        return OutputError(f"The file {shown} cannot be written ({type(error).__name__}).")
    why = (error.strerror or "the system gives no reason").lower()
    return OutputError(f"The file {shown} cannot be written: {why}.")


def place_of(path: Path) -> Path:
    """Return the file that a path names: links are followed, and what is there is a regular file.

    It need not be there. Devices, pipes, sockets, folders and links in a circle are refused.

    Raises
    ------
    OSError
    """
    target = Path(os.path.realpath(path))
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return target
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder; give the name of a file")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "there is something that is not a file")
    return target


def _duplicate(source: Path, target: Path) -> None:
    if _linked(source, target):
        return
    # For its owner only from the first byte on: it may hold true labels.
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    shutil.copy2(source, target)


def _linked(source: Path, target: Path) -> bool:
    """Give a file a second name that nothing has; return whether the file system can do that.

    Raises
    ------
    FileExistsError
        If something has that name.
    """
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:
        return False
    return True


def _twice(action: Callable[[], object]) -> None:
    """Do something that must not fail, once more where it failed."""
    try:
        action()
    except OSError:
        action()


def _sync_folder(folder: Path) -> None:
    """Force a rename to the disk, where the system can do that for a folder."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
