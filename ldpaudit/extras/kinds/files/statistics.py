"""Files of statistics packages: Stata (.dta), SPSS (.sav, .zsav) and SAS (.sas7bdat, .xpt)."""

# A value with a label is that category; missing values of every kind are missing.

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from ldpaudit.datasets.formats.locations import Location, check_width, unreadable
from ldpaudit.datasets.formats.tables import MemoryTable, check_fits, usual_column
from ldpaudit.datasets.names import quoted
from ldpaudit.doors import InputError, LdpAuditError, MissingDependencyError

# How files of each name begin, and what reads them.
_STATA: Final = (b"<stata_dta>", *(bytes([version]) for version in range(104, 116)))
_SAS: Final = bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
_READERS: Final = {
    ".dta": ("Stata", "read_dta", _STATA),
    ".sav": ("SPSS", "read_sav", (b"$FL2", b"$FL3")),
    ".zsav": ("SPSS", "read_sav", (b"$FL2", b"$FL3")),
    ".sas7bdat": ("SAS", "read_sas7bdat", (_SAS,)),
    ".xpt": ("SAS", "read_xport", (b"HEADER RECORD*******LIB",)),
}
# Bytes of memory that a number takes while it is read, and rows of a file that does not count them.
_CELL: Final = 48
_UNCOUNTED: Final = 1 << 16
# Microseconds to which times are exact.
_EXACT: Final = 10


@dataclass(frozen=True)
class Described:
    """What a file of a statistics package says of its columns."""

    labels: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)
    """From a column to its values' labels."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """To the column's own label."""


class StatisticsFile(MemoryTable):
    """A file of a statistics package, whose table is in memory."""

    described: Described

    def __init__(self, location: Location) -> None:
        path, name = location.paths[0], location.name
        suffix = next(end for end in _READERS if path.lower().endswith(end))
        package, reader, starts = _READERS[suffix]
        try:
            import pyreadstat
        except ImportError:
            raise MissingDependencyError(
                f"Reading files of {package} needs pyreadstat: pip install 'ldpaudit[statistics]', "
                "or save as CSV."
            ) from None
        if not isinstance(location.filesystem, pafs.LocalFileSystem):
            raise InputError(f"{quoted(name)} is not on this machine; copy it here to read it.")
        with unreadable(name), Path(path).open("rb") as file:
            start = file.read(64)
        if not start:
            raise InputError(f"The file {quoted(name)} is empty.")
        if not start.startswith(starts):
            raise InputError(
                f"The file {quoted(name)} is no file of {package}, which its name says it is."
            )
        with unreadable(name):
            try:
                read = getattr(pyreadstat, reader)
                table, self.remark, self.described = _read(read, path, name)
            except (LdpAuditError, MemoryError):
                raise
            except Exception as error:  # Errors of the library have classes of its own.
                raise InputError(
                    f"The file {quoted(name)} is damaged or truncated ({type(error).__name__})."
                ) from None
        super().__init__(table, location)


def _read(read: Any, path: str, name: str) -> tuple[pa.Table, str, Described]:
    """Return the table, a remark on columns whose values have labels in part, and all labels."""
    _, head = read(path, metadataonly=True, output_format="dict")
    check_width(len(head.column_names), name)
    rows = head.number_rows
    counted = rows is not None and rows >= 0
    widths = [max(int(head.variable_storage_width.get(n) or 8), 8) for n in head.column_names]
    text = sum(width for width in widths if width > 8)
    size = (rows if counted else 0) * (_CELL * len(widths) + text)
    check_fits(size, f"The file {quoted(name)}")
    pieces = []
    for start in range(0, 1 << 62, _UNCOUNTED):
        limits = {} if counted else {"row_offset": start, "row_limit": _UNCOUNTED}
        values, _ = read(path, output_format="dict", **limits)
        pieces.append(values)
        done = len(next(iter(values.values()), ()))
        check_fits((start + done) * (_CELL * len(widths) + text), f"The file {quoted(name)}")
        if counted or done < _UNCOUNTED:
            break
    arrays, partly = [], []
    for place, column in enumerate(head.column_names, start=1):
        own = [_array(values[column], place, name) for values in pieces]
        array = usual_column(pa.chunked_array(own))
        labels = head.variable_value_labels.get(column)
        if labels:
            labelled = _labelled(array, labels)
            if labelled is None:
                partly.append(str(place))
            array = array if labelled is None else labelled
        arrays.append(array)
    table = pa.Table.from_arrays(arrays, names=[*head.column_names])
    titles = {key: text for key, text in head.column_names_to_labels.items() if text}
    described = Described({**head.variable_value_labels}, titles)
    if not partly:
        return table, "", described
    which = ", ".join(partly[:10]) + (f" and {len(partly) - 10} more" if len(partly) > 10 else "")
    columns = f"column{'s' if len(partly) > 1 else ''} {which}"
    return (
        table,
        f"it stands where only some values have a label of their own ({columns})",
        described,
    )


def _array(values: Any, place: int, name: str) -> pa.Array:
    """Return a column, what is missing as such: NaN, None and an empty text."""
    try:
        array = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError(
            f"Column {place} of {quoted(name)} mixes numbers, texts or dates; give it one type."
        ) from None
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        empty = pc.equal(array, "")
        return pc.if_else(empty, pa.scalar(None, array.type), array)
    if pa.types.is_timestamp(array.type):
        # Seconds since 1582 (SPSS) or 1960 (SAS) in 64 bits are no more exact than that.
        return pc.round_temporal(array, multiple=_EXACT, unit="microsecond")
    return array


def _labelled(array: pa.ChunkedArray, labels: Mapping[Any, str]) -> pa.ChunkedArray | None:
    """Return the categories that values stand for; None where some have no label of their own."""
    if not all(isinstance(text, str) for text in labels.values()):
        return None
    if len({*labels.values()}) < len(labels):
        return None
    encoded = array.dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = pa.concat_arrays(encoded.chunks)
    texts = [labels.get(value) for value in encoded.dictionary.to_pylist()]
    if any(text is None for text in texts):
        return None
    # Those that occur, in the order of their values: others would show who was left out.
    every = [*dict.fromkeys(labels[value] for value in sorted(labels, key=_order))]
    place = {text: at for at, text in enumerate(every)}
    used = sorted({place[text] for text in texts if text is not None})
    names = pa.array([every[at] for at in used], pa.string())
    codes = {at: code for code, at in enumerate(used)}
    of_value = np.array([codes[place[text]] for text in texts if text is not None] + [-1])
    rows = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    found = of_value[rows]
    indices = pa.array(found, pa.int32(), mask=found < 0)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, names)])


def _order(value: Any) -> tuple[int, float, str]:
    return (1, 0.0, value) if isinstance(value, str) else (0, float(value), "")
