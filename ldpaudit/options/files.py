"""Options of how tables in text files and workbooks are written."""

import codecs
from dataclasses import dataclass
from typing import Annotated

from ldpaudit.errors import InputError
from ldpaudit.options.declaring import Option

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
    """

    separator: Annotated[
        str | None, Option("The mark between fields of CSV files (default: detected).", shown=True)
    ] = None
    decimal: Annotated[
        str | None,
        Option("The decimal mark in CSV files, '.' or ',' (default: detected).", shown=True),
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
        Option("The first line names the columns even if it looks like a row.", shown=True),
    ] = False

    @property
    def files(self) -> "FileOptions":
        """These options alone, checked, of a request that may hold others (InputError)."""
        mark, decimal, encoding = self.separator, self.decimal, self.encoding
        if mark is not None:
            mark = _NAMED.get(mark.lower(), mark)
            if len(mark) != 1 or mark.isalnum() or not mark.isascii() or mark in "\"'\r\n.+-_":
                raise InputError("--separator must be one mark, such as ';' or tab.")
        if decimal is not None and (decimal := _MARKS.get(decimal.lower(), decimal)) not in ".,":
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
        )


AS_FOUND = FileOptions()
"""Nothing is stated."""
