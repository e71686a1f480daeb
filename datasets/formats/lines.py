"""Text files of one record a line, in blocks of whole lines."""

from collections.abc import Iterator
from typing import Final

from ldpaudit.datasets.formats.locations import Location, unreadable
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError

_BYTES: Final = 1 << 24
_LONGEST_LINE: Final = 1 << 26


def line_blocks(location: Location, kind: str) -> Iterator[bytes]:
    """Yield blocks of whole lines, each ending with a line break; some 16 MiB at a time.

    ``kind`` names the format in messages.

    Raises
    ------
    InputError
        If the file cannot be read, or a line is longer than 64 MiB.
    """
    path = location.paths[0]
    compression = "gzip" if path.lower().endswith(".gz") else None
    rest = b""
    with unreadable(location.name, f"is not a readable {kind} file"):
        with location.filesystem.open_input_stream(path, compression=compression) as stream:
            while block := bytes(stream.read(_BYTES)):
                text = rest + block
                cut = text.rfind(b"\n") + 1
                if not cut and len(text) > _LONGEST_LINE:
                    raise InputError(f"A line of {quoted(location.name)} is longer than 64 MiB.")
                rest = text[cut:]
                if cut:
                    yield text[:cut]
        if rest:
            yield rest + b"\n"
