"""Options about the release: how its files are written, its claim, its columns, its companions."""

import codecs
from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ldpaudit.errors import InputError
from ldpaudit.options.declaring import Option
from ldpaudit.options.labels import LabelOptions, check_distinct, parse_label
from ldpaudit.options.tables import Labels, LabelsOfEach, Table

if TYPE_CHECKING:
    import numpy as np

    from ldpaudit.mechanisms.interface import Mechanism
    from ldpaudit.release import Declaration


_NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
_MARKS = {"point": ".", "comma": ","}


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """How text files and workbooks are written; what is not given is detected.

    They hold for every file that a command reads as a table.

    Attributes
    ----------
    separator : str or None
        The mark between the fields of a CSV file.
    decimal : {".", ","} or None
        The decimal mark of numbers. Where it is stated, the other mark may separate thousands.
    encoding : str or None
        As Python names it.
    sheet : str or None
        A workbook's sheet by its name, or by its number from 1; None: the first.
    header : bool
        Whether the first line names the columns even if it looks like a row.
    text : collection of str
        Columns that are read as text, letter for letter.
    missing_values : collection of str
        Further texts, or numbers, that stand for a missing value.
    """

    separator: Annotated[
        str | None, Option("Between fields of CSV files (default: detected).", shown=True)
    ] = None
    decimal: Annotated[
        str | None,
        Option("The decimal mark of CSV files (default: detected).", shown=True),
    ] = None
    encoding: Annotated[
        str | None,
        Option("The encoding of CSV files: utf-8, cp1252 … (default: detected).", shown=True),
    ] = None
    sheet: Annotated[
        str | None, Option("The sheet of an Excel file: name or number (default: the first).")
    ] = None
    header: Annotated[
        bool,
        Option("The first line names the columns in any case.", shown=True),
    ] = False
    text: Annotated[
        Collection[str],
        Option("A column to read as text (repeatable).", lines=True),
    ] = ()
    missing_values: Annotated[
        Collection[str],
        Option("One more mark of a missing value (repeatable).", lines=True),
    ] = ()

    @property
    def files(self) -> "FileOptions":
        """These options alone, checked, of a request that may hold others (InputError)."""
        mark, decimal, encoding = self.separator, self.decimal, self.encoding
        if mark is not None:
            mark = _NAMED.get(mark.lower(), mark)
            if len(mark) != 1 or mark.isalnum() or not mark.isascii() or mark in "\"'\r\n.+-_":
                raise InputError("--separator must be one mark, such as ';' or tab.")
        if decimal is not None and (decimal := _MARKS.get(decimal.lower(), decimal)) not in (
            ".",
            ",",
        ):
            raise InputError("--decimal must be '.' or ','.")
        try:
            if encoding is not None and "a".encode(encoding):
                encoding = codecs.lookup(encoding).name
        except (LookupError, TypeError, ValueError):
            raise InputError(
                "--encoding must be a text encoding that Python knows, such as utf-8, cp1252 or "
                "utf-16."
            ) from None
        return FileOptions(
            separator=mark,
            decimal=decimal,
            encoding=encoding,
            sheet=self.sheet,
            header=self.header,
            text=_listed("--text", self.text),
            missing_values=_listed("--missing-values", self.missing_values),
        )


def _listed(option: str, words: Collection[str]) -> tuple[str, ...]:
    """Return words as a tuple; one text alone is none (InputError)."""
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise InputError(f"{option} must be a list of texts.")
    return tuple(words)


# Nothing is stated.
AS_FOUND = FileOptions()


@dataclass(frozen=True)
class ClaimOptions:
    """The claim about a release that declares none, as the command line states it."""

    mechanism: Annotated[str | None, Option("The claimed mechanism, or 'unknown'.", shown=True)] = (
        None
    )
    epsilon: Annotated[float | None, Option("The claimed ε, in nats.", shown=True)] = None
    noise: Annotated[
        float | None,
        Option("The claimed λ: chance of a uniformly drawn label.", "--lambda", shown=True),
    ] = None
    channel: Annotated[
        Path | None,
        Option("The claimed channel: a CSV file, one row a label.", file=True),
    ] = None
    labels: Annotated[
        str | None, Option("The claimed range of a numeric label: LO:HI or LO:HI:STEP.")
    ] = None


def truths_of(files: tuple[str, ...]) -> str | tuple[str, ...]:
    """Read ``--truth``: one file, or one for each of several releases."""
    whole = " ".join(files)  # A variable of the environment is split at blanks.
    return whole if len(files) == 1 or Path(whole).is_file() else files


@dataclass(frozen=True)
class ReleaseOptions:
    """What is known about a release: its true labels, its claim, its columns, its companions.

    A command's request derives from it to have these options. ``truth``, ``mechanism``, ``rng``,
    ``label``, ``truth_column``, ``original``, ``synthetic``, ``held_out``, ``id_column``,
    ``group``, ``projection``, ``before``, ``drop`` and ``features`` are as in
    :class:`~ldpaudit.options.audit.AuditOptions`.
    """

    truth: Annotated[
        Labels | LabelsOfEach | None,
        Option(
            "True labels: a file in the same row order, or joined on --id; for several releases "
            "one file, or one for each (repeatable).",
            type=tuple[str, ...],
            read=truths_of,
            file=True,
        ),
    ] = None
    mechanism: Annotated[
        "Mechanism | Declaration | Mapping[str, Any] | ClaimOptions | str | None", ClaimOptions
    ] = None
    rng: Annotated[
        "np.random.Generator | int | None",
        Option("The seed (default: derived from the release).", "--seed", type=int, shown=True),
    ] = None
    _: KW_ONLY
    label: Annotated[
        Collection[str],
        Option(
            "A released private column, also with its claim, NAME:rr:epsilon=1 (repeatable; "
            "default: as declared, or 'label').",
            lines=True,
        ),
    ] = ()
    truth_column: Annotated[
        Collection[str],
        Option(
            "The column of true labels, one for each --label in their order (repeatable).",
            lines=True,
        ),
    ] = ()
    original: Annotated[
        Table | None,
        Option(
            "The features before they were changed, in the same row order.", type=str, file=True
        ),
    ] = None
    synthetic: Annotated[
        Table | None,
        Option("The synthetic rows, with labels, that replaced features.", type=str, file=True),
    ] = None
    held_out: Annotated[
        Table | None,
        Option(
            "Rows like the originals that no generator saw (with --original).", type=str, file=True
        ),
    ] = None
    id_column: Annotated[
        str | None,
        Option("The column on which all these files are joined.", "--id"),
    ] = None
    group: Annotated[str | None, Option("The column of rows that belong together (household).")] = (
        None
    )
    projection: Annotated[
        int | None,
        Option("Columns that sparse features become (svmlight; default: 256).", shown=True),
    ] = None
    before: Annotated[
        Collection[str],
        Option(
            "A column from before the noise (repeatable; '*': all).",
            lines=True,
        ),
    ] = ()
    drop: Annotated[Collection[str], Option("A column that is no feature (repeatable).")] = ()
    features: Annotated[
        Collection[str] | None,
        Option("A column that is a feature (repeatable; default: the rest)."),
    ] = None


def named_columns(options: ReleaseOptions) -> tuple[LabelOptions, ...]:
    """Return the private columns that the options name, each with what it claims.

    Raises
    ------
    InputError
        If one is named twice, or its claim cannot be read.
    """
    columns = tuple(map(parse_label, texts_of(options.label, "label")))
    check_distinct(one.label for one in columns)
    return columns


def texts_of(given: Any, role: str) -> tuple[str, ...]:
    """Return one name or several as several (InputError where one is no text)."""
    names = (given,) if isinstance(given, str) or not isinstance(given, Collection) else given
    for name in names:
        if not isinstance(name, str):  # From Python; a data frame's column 5 is read as '5'.
            raise InputError(
                f"The {role} column must be named by a text, as '5'. "
                f"Got {type(name).__name__} instead."
            )
    return tuple(names)


def check_ordered(given: Any, role: str) -> None:
    """Refuse a set of several columns: they are numbered, and its order varies from run to run."""
    if isinstance(given, set | frozenset) and len(given) > 1:
        raise InputError(f"Several {role} columns are numbered in their order: give a list.")
