"""Files that are written completely, several of them all or none."""

# A file is written under the name ``.NAME.new.tmp`` in its target's folder, and the process holds
# the lock of that draft until it has its name: a second run with the same output waits, or is
# refused. What was at the target is kept as ``.NAME.old.tmp`` until all new files are in place. The
# next run with the same output takes over what a killed one left of these.

import errno
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, Self

from ldpaudit.errors import OutputError, quoted
from ldpaudit.work.interruption import heed_waiting, over, tell, undisturbed

# Seconds that a run waits for another one with the same output.
_PATIENCE: Final = 10.0
_TICK: Final = 0.02


def write_whole(path: Path, text: str, *, private: bool = False) -> None:
    """Write one text file (UTF-8) as :func:`write_all` does."""
    write_all({path: text}, private=private)


def write_all(texts: Mapping[Path, str], *, last: bool = False, private: bool = False) -> None:
    """Write several text files (UTF-8), all of them or none.

    ``last``: the last of a command; ``private``: for nobody but their owner (mode 0600).
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
    ``overwrite``: whether files that are there already are replaced; ``last``: whether they are
    all that a command still has to write: a signal then comes too late.
    """

    overwrite: bool = True
    last: bool = False
    _parts: list["PartFile"] = field(default_factory=list)

    def add(
        self, path: Path, *, private: bool = False, overwrite: bool | None = None
    ) -> "PartFile":
        """Start a file.

        ``path``: in an existing folder. Of a symbolic link the file that it names is replaced.
        ``private``: whether nobody but its owner may ever read it (mode 0600); others only when
        complete. ``overwrite``: whether it may be replaced; default: as for all files.
        """
        may = self.overwrite if overwrite is None else overwrite
        part = PartFile(path, private=private, overwrite=may)
        self._parts.append(part)  # Before the file is there: an interruption comes any time.
        part.open()
        return part

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with ExitStack() as stack:
            stack.enter_context(undisturbed())
            for part in self._parts:
                stack.callback(part.clean)
            if kind is None:
                for part in self._parts:
                    part.complete()
                heed_waiting()
                self._publish()

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


@dataclass
class PartFile:
    """A file that is being written: open, write, complete, keep_former, commit, settle, clean."""

    path: Path
    private: bool = False
    overwrite: bool = True
    # Writes the end of the file, where its format has one; called once, at the latest by clean.
    finish: Callable[[], None] | None = None
    stream: IO[bytes] = field(init=False)
    _target: Path = field(init=False)
    _draft: Path = field(init=False)
    # By which the new file is distinguished from the former one and from drafts of other runs.
    _known: os.stat_result | None = None
    # What was at the target, until the new content is safe.
    _former: Path | None = None

    def open(self) -> None:
        """Start a new file in the target's folder, when no other run writes it."""
        self.check_free()
        with self.writing():
            self._target = place_of(self.path)
            self._draft = _companion(self._target, "new")
            deadline = time.monotonic() + _PATIENCE
            while not self._held():
                if time.monotonic() > deadline:
                    raise OSError(errno.EBUSY, "another run is writing it")
                time.sleep(_TICK)
        self.check_free()  # The other run may have written it.

    def _held(self) -> bool:
        """Open the draft and hold its lock; return False while another run does."""
        with undisturbed():
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            # Its owner's alone until it takes its name: what is refused at the end may tell labels.
            descriptor = os.open(self._draft, flags, 0o600)
            try:
                known = os.fstat(descriptor)
                if not _may_be_draft(known):
                    raise OSError(errno.EEXIST, "something else has the name of its draft")
                if hold(descriptor) and _is_at(known, self._draft):
                    if not known.st_mode & 0o077 and known.st_nlink == 1:
                        os.ftruncate(descriptor, 0)
                        self.stream, self._known = os.fdopen(descriptor, "wb"), known
                        return True
                    self._draft.unlink()  # Others may read it: a killed run was about to name it.
            except BaseException:
                with suppress(OSError):
                    known = os.fstat(descriptor)
                    own = _may_be_draft(known) and hold(descriptor, certainly=True)
                    if own and _is_at(known, self._draft):
                        self._draft.unlink()
                os.close(descriptor)
                raise
            os.close(descriptor)
            return False

    def write(self, content: bytes) -> None:
        """Append bytes."""
        with self.writing():
            self.stream.write(content)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn any failure in the block into one line that names this file."""
        try:
            yield
        except OutputError:
            raise
        except Exception as error:
            shown = quoted(self.path.name or str(self.path))
            # The text of a library's error may hold a cell.
            why = f"The file {shown} cannot be written ({type(error).__name__})."
            if isinstance(error, OSError):
                reason = (error.strerror or "the system gives no reason").lower()
                why = f"The file {shown} cannot be written: {reason}."
            raise OutputError(why) from None

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
        with self.writing():
            former = _companion(self._target, "old")
            former.unlink(missing_ok=True)
            if self._target.exists():
                self._former = former
                if not _linked(self._target, former):
                    # For its owner only from the first byte on: it may hold true labels.
                    os.close(os.open(former, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
                    shutil.copy2(self._target, former)
            if not self.private:
                mask = os.umask(0o077)  # The only way to ask: stricter, for a moment.
                os.umask(mask)
                known = self._former is not None
                mode = self._target.stat().st_mode & 0o7777 if known else 0o666 & ~mask
                with suppress(PermissionError):  # Some file systems have one mode only.
                    self._draft.chmod(mode)

    def commit(self) -> None:
        """Put the new file in the target's place."""
        with self.writing():
            if not _is_at(self._known, self._draft):  # Where a file system knows no locks.
                raise OSError(errno.EBUSY, "another run is writing it")
            # A second name takes the place of nothing, whatever was put there meanwhile.
            if self.overwrite or not _linked(self._draft, self._target):
                self._draft.replace(self._target)

    def settle(self) -> None:
        """Force the new name to the disk."""
        with self.writing(), ExitStack() as opened, suppress(OSError):
            # Where the system can do that for a folder.
            descriptor = os.open(self._target.parent, os.O_RDONLY)
            opened.callback(os.close, descriptor)
            os.fsync(descriptor)

    def undo(self) -> str:
        """Restore what was there before; return in words what could not be restored."""
        if self._known is None or not _is_at(self._known, self._target, doubtful=True):
            return ""
        former, shown = self._former, quoted(self.path.name)
        try:
            if former is None:
                _twice(self._target.unlink)
            else:
                _twice(partial(former.replace, self._target))
        except OSError:
            if former is None:
                return f"Nor can {shown} be taken back: it is there, new and complete."
            self._former = None  # It is all that there is of it.
            return (
                f"Nor can {shown} be taken back: it is the new one, and the previous file "
                f"is next to it as {quoted(former.name)}."
            )
        return ""

    def clean(self) -> None:
        """Remove what is left over, and let other runs write the file."""
        if self._known is None:
            return
        with suppress(Exception):
            self._finish()
        own = _is_at(self._known, self._draft, doubtful=True)
        for path in filter(None, (self._draft if own else None, self._former)):
            try:
                _twice(partial(path.unlink, missing_ok=True))
            except OSError:
                tell(f"The draft {quoted(path.name)} cannot be removed: remove it.")
        with suppress(OSError):
            self.stream.close()

    def _finish(self) -> None:
        finish, self.finish = self.finish, None
        if finish is not None:
            finish()


def hold(descriptor: int, *, certainly: bool = False) -> bool:
    """Hold the lock of a file as long as its descriptor is open; False if another one holds it.

    Where the file system knows no locks, nobody does; ``certainly``: then it is not had.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not certainly and error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True


def _companion(target: Path, kind: str) -> Path:
    """Return the hidden name of a target's draft, or of what was there before."""
    name = os.fsdecode(os.fsencode(target.name)[:240])
    return target.parent / f".{name}.{kind}.tmp"


def _may_be_draft(known: os.stat_result) -> bool:
    return stat.S_ISREG(known.st_mode) and known.st_uid == os.getuid()


def _is_at(known: Any, path: Path, *, doubtful: bool = False) -> bool:
    """Return whether a path names a known file; in doubt what is said."""
    try:
        return os.path.samestat(known, path.lstat())
    except FileNotFoundError:
        return False
    except OSError:
        return doubtful


def place_of(path: Path) -> Path:
    """Return the file that a path names: links are followed, and what is there is a regular file.

    It need not be there. Devices, pipes, sockets, folders and links in a circle are refused.
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


def _linked(source: Path, target: Path) -> bool:
    """Give a file a second name that nothing has; return whether the file system can do that."""
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
