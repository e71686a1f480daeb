"""Writing a release: the whole file, or nothing."""

import contextlib
import os
import secrets
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ldpaudit.datasets.names import quoted
from ldpaudit.errors import OutputError


def write_release(
    table: pa.Table, path: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write a table as a Parquet file, with the declaration that :func:`declare` put into it.

    The file appears under its name only when all of it is on the disk.

    Parameters
    ----------
    table : pyarrow.Table
    path : str or os.PathLike
        A local path in a folder that exists.
    overwrite : bool
        Whether a file that is there already is replaced.

    Raises
    ------
    OutputError
        If the file is there already, or cannot be written.
    """
    target = Path(path)
    shown = quoted(target.name)
    draft = target.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        if target.is_dir() or (target.exists() and not overwrite):
            raise OutputError(f"{shown} exists already and is left as it is.")
        with draft.open("xb") as stream:
            pq.write_table(table, stream, write_page_checksum=True)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(target)
    except OutputError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise OutputError(f"{shown} cannot be written ({type(error).__name__}).") from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    return target
