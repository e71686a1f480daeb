"""Files of statistics packages written again: .dta of Stata, .sav and .zsav of SPSS, .xpt of SAS.

A value is written only where it is read back as the same: what a package would round, cut or take
for missing is refused with one line.
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.tables import TEXTS, check_fits, is_any, value_type
from ldpaudit.datasets.names import quoted, shown_type
from ldpaudit.doors import InputError, MissingDependencyError, OutputError, Scratch
from ldpaudit.extras.kinds.files.statistics import Described

Cells = Any
# Whole numbers beyond that are not all a number of 64 bits with a decimal mark.
_WHOLE: Final = 1 << 53
# Bytes in memory for each byte that is held: as Arrow's, as pandas', and as the library's.
_TIMES: Final = 4
_OTHERWISE: Final = "give the file a name that ends in .parquet"


@dataclass(frozen=True)
class _Package:
    """What the files of a package hold."""

    title: str
    names: re.Pattern[str]
    """What a column may be called, and ``called`` that in words."""
    called: str
    text: int
    """Bytes of the longest text."""
    label: int
    """Of the longest label of a value, 0 where there are none."""
    padded: bool
    """Whether spaces at the end of a text are lost."""
    range: tuple[float, float]
    """The smallest and largest number."""
    cased: bool = False
    reserved: frozenset[str] = frozenset()
    """In lower case."""


_STATA: Final = _Package(
    "Stata",
    re.compile(r"(?!str\d+$)[^\W\d]\w{0,31}"),
    "at most 32 letters, digits and _, no digit first",
    text=2045,
    label=32_000,
    padded=False,
    range=(0.0, 8.9e307),
    cased=True,
    reserved=frozenset(
        {
            "_all",
            "_b",
            "_coef",
            "_cons",
            "_n",
            "_pi",
            "_pred",
            "_rc",
            "_skip",
            "byte",
            "double",
            "float",
            "if",
            "in",
            "int",
            "long",
            "strl",
            "using",
            "with",
        }
    ),
)
_SPSS: Final = _Package(
    "SPSS",
    re.compile(r"(?!_)([^\W\d]|@)([\w.$#@]{0,62}[\w$#@])?"),
    "at most 64 letters, digits and . _ $ # @, a letter first",
    text=32_767,
    label=120,
    padded=True,
    range=(0.0, 1.7e308),
    reserved=frozenset(
        {"all", "and", "by", "eq", "ge", "gt", "le", "lt", "ne", "not", "or", "to", "with"}
    ),
)
_SAS: Final = _Package(
    "SAS",
    re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}"),
    "at most 32 letters, digits and _, no digit first",
    text=32_767,
    label=0,
    padded=True,
    range=(1e-77, 7e75),
    reserved=frozenset(["_n_", "_error_", "_numeric_", "_character_", "_all_"]),
)
_PACKAGES: Final = {".dta": _STATA, ".zsav": _SPSS, ".sav": _SPSS, ".xpt": _SAS}
# Names and texts of the older form of .xpt, which every reader knows.
_OLD_NAME, _OLD_TEXT = 8, 200
_NAME_BYTES: Final = 64


def package_of(target: Path) -> _Package:
    """Return what the files of a name hold; MissingDependencyError without the library for it."""
    package = _PACKAGES[target.suffix.lower()]
    try:
        import pyreadstat  # noqa: F401
    except ImportError:
        raise MissingDependencyError(
            f"Writing files of {package.title} needs pyreadstat: pip install "
            "'ldpaudit[statistics]', or write Parquet."
        ) from None
    return package


def check_described(target: Path, schema: pa.Schema) -> None:
    """Refuse names and types of columns that a package does not have (OutputError)."""
    package, seen = package_of(target), dict[str, int]()
    for place, one in enumerate(schema, start=1):
        kind = value_type(one.type)
        lower = one.name if package.cased else one.name.lower()
        named = package.names.fullmatch(one.name) and one.name.lower() not in package.reserved
        named = named and len(one.name.encode()) <= _NAME_BYTES
        if not named or lower in seen:
            why = (
                f"the name of column {seen[lower]}, but for upper and lower case"
                if named
                else f"a name that {package.title} does not allow ({package.called})"
            )
            raise OutputError(f"Column {place} has {why}; rename it, or {_OTHERWISE}.")
        seen[lower] = place
        known = is_any(kind, "integer", "floating", "decimal", "boolean", "null", "date", "time")
        known |= is_any(kind, *TEXTS) or (pa.types.is_timestamp(kind) and kind.tz is None)
        if not known:
            raise OutputError(
                f"Column {place} is of type {shown_type(one.type)}, which {package.title} cannot "
                f"hold; {_OTHERWISE}."
            )


class StatisticsWriter:
    """Collects rows, and writes them at the end: the library takes a whole table."""

    def __init__(
        self, target: Path, schema: pa.Schema, stream: Any, described: Described | None
    ) -> None:
        check_described(target, schema)
        self._target, self._schema, self._stream = target, schema, stream
        self._described = described or Described()
        self._package, self._batches, self._size = package_of(target), list[pa.RecordBatch](), 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; OutputError where memory cannot hold them all."""
        self._batches.append(batch)
        self._size += batch.nbytes
        try:
            check_fits(_TIMES * self._size, f"The file {quoted(self._target.name)}")
        except InputError as error:
            raise OutputError(str(error)) from None

    def close(self) -> None:
        """Write all rows."""
        import pandas as pd
        import pyreadstat

        kinds = [pa.field(one.name, one.type) for one in self._schema]
        batches = [pa.RecordBatch.from_arrays(b.columns, b.schema.names) for b in self._batches]
        table = pa.Table.from_batches(batches, pa.schema(kinds)).unify_dictionaries()
        columns, labels, longest = dict[str, Cells](), dict[str, dict[Any, str]](), 0
        for place, name in enumerate(table.column_names, start=1):
            cells, own = self._written(table.column(name), name, place)
            columns[name] = cells
            labels |= {name: own} if own else {}
            if len(cells) and cells.dtype == object:
                texts = (len(cell.encode()) for cell in cells if isinstance(cell, str))
                longest = max(longest, max(texts, default=0))
        frame = pd.DataFrame(columns)
        titles = {n: t for n, t in self._described.titles.items() if t and n in columns}
        options: dict[str, Any] = {"column_labels": titles} if titles else {}
        suffix = self._target.suffix.lower()
        with Scratch() as scratch:
            place_of_all = scratch.folder / f"release{suffix}"
            place_of_all.touch(mode=0o600)
            if suffix == ".xpt":
                old = longest <= _OLD_TEXT and all(len(name) <= _OLD_NAME for name in columns)
                options["file_format_version"] = 5 if old else 8
                pyreadstat.write_xport(frame, place_of_all, **options)
            elif suffix == ".dta":
                pyreadstat.write_dta(frame, place_of_all, variable_value_labels=labels, **options)
            else:
                options |= {"compress": suffix == ".zsav", "variable_value_labels": labels}
                pyreadstat.write_sav(frame, place_of_all, **options)
            with place_of_all.open("rb") as written:
                shutil.copyfileobj(written, self._stream)

    def _written(
        self, column: pa.ChunkedArray, name: str, place: int
    ) -> tuple[Cells, dict[Any, str]]:
        """Return the cells of a column, and the labels of its values."""
        stated = self._described.labels.get(name, {})
        if is_any(column.type, *TEXTS) and stated:
            # Labels as text, where missing ones are a class; else the values themselves.
            texts = {*pc.unique(column).to_pylist()}
            if texts & {*stated.values()} and not texts & {*stated}:
                column = column.dictionary_encode()
        if pa.types.is_dictionary(column.type) and is_any(value_type(column.type), *TEXTS):
            coded = self._coded(column, stated)
            if coded is not None:
                return coded
        kind = value_type(column.type)
        column = column.cast(kind) if kind != column.type else column
        if is_any(kind, *TEXTS):
            cells = self._texts(column, place)
            used = {cell for cell in cells if isinstance(cell, str)} if stated else ()
        elif is_any(kind, "date", "time", "timestamp"):
            return self._times(column, place), {}
        else:
            cells = self._numbers(column, place)
            used = {*cells[np.isfinite(cells)].tolist()} if stated else ()
        # Of values that no row has, none is left: their labels would show who was left out.
        kept = {v: label for v, label in stated.items() if v in used and label}
        return cells, kept if self._package.label else {}

    def _coded(
        self, column: pa.ChunkedArray, stated: Mapping[Any, str]
    ) -> tuple[Cells, dict[Any, str]] | None:
        """Return categories as the values that had these labels; None where they have none."""
        whole = column.combine_chunks()
        chunk = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
        texts: list[str] = chunk.dictionary.to_pylist()
        longest = max((len(text.encode()) for text in texts), default=0)
        if longest > self._package.label or "" in texts:
            return None
        of_text = {label: value for value, label in stated.items()}
        values = [of_text.get(text) for text in texts]
        if any(isinstance(value, str) for value in values):
            if any(value is None for value in values):
                return None
            cells = np.array([*values, None], dtype=object)
        else:
            last = max([0, *(int(v) for v in stated if not isinstance(v, str))])
            free = iter(range(last + 1, last + len(texts) + 1))
            values = [next(free) if value is None else value for value in values]
            cells = np.array([*values, np.nan], dtype=np.float64)
        rows = chunk.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        return cells[rows], dict(zip(values, texts, strict=True))

    def _texts(self, column: pa.ChunkedArray, place: int) -> Cells:
        package = self._package
        longest = pc.max(pc.binary_length(column)).as_py() or 0
        for wrong, what in (
            (longest > package.text, f"texts of more than {package.text:,} bytes"),
            (pc.any(pc.equal(column, "")).as_py(), "empty texts, which are missing values there"),
            (
                package.padded and pc.any(pc.ends_with(column, " ")).as_py(),
                "texts that end in a space, which would be lost",
            ),
            (
                pc.any(pc.match_substring(column, "\0")).as_py(),
                "texts with a character NUL, where they would end",
            ),
        ):
            if wrong:
                raise OutputError(
                    f"Column {place} of {quoted(self._target.name)} holds {what} in files of "
                    f"{package.title}; {_OTHERWISE}."
                )
        return column.cast(pa.string()).to_numpy()

    def _numbers(self, column: pa.ChunkedArray, place: int) -> Cells:
        """Return numbers as float64, NaN where one is missing."""
        kind, package = column.type, self._package
        if pa.types.is_null(kind):
            return np.full(len(column), np.nan)
        if pa.types.is_boolean(kind):
            column = column.cast(pa.int8())
        elif pa.types.is_float16(kind) or pa.types.is_float32(kind) or pa.types.is_decimal(kind):
            # The shortest numbers that are read back as the same: so labels are declared.
            short = column.cast(pa.float32()) if pa.types.is_float16(kind) else column
            column = short.cast(pa.large_string())
        cells = column.cast(pa.float64(), safe=False).to_numpy()
        known, (least, most) = np.abs(cells[~np.isnan(cells)]), package.range
        whole = not is_any(kind, "floating") and known.max(initial=0) >= _WHOLE
        beyond = ((known > most) | ((known > 0) & (known < least))).any()
        if whole or beyond:
            what = "whole numbers of 2⁵³ or more" if whole else "numbers outside of the range"
            raise OutputError(
                f"Column {place} of {quoted(self._target.name)} holds {what} that files of "
                f"{package.title} can hold exactly; write them as text, or {_OTHERWISE}."
            )
        return cells

    def _times(self, column: pa.ChunkedArray, place: int) -> Cells:
        kind = column.type
        try:
            if pa.types.is_timestamp(kind):
                column = column.cast(pa.timestamp("ms"))
            elif pa.types.is_time(kind):
                column = column.cast(pa.time64("us")).cast(pa.time32("ms"))
        except pa.ArrowInvalid:
            raise OutputError(
                f"Column {place} of {quoted(self._target.name)} holds times of less than a "
                f"millisecond, which files of {self._package.title} do not hold; {_OTHERWISE}."
            ) from None
        cells = np.empty(len(column), dtype=object)
        cells[:] = column.to_pylist()
        return cells
