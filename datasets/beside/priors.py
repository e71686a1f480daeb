"""The labels' prior: a small CSV file of probabilities, or counts of a column."""

import csv
import os
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.formats.columns import NUMBERS, check_complete, is_any
from ldpaudit.datasets.formats.csv_file import small_csv
from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.datasets.labels import forms, read_texts
from ldpaudit.datasets.names import missing_column, quoted
from ldpaudit.errors import InputError
from ldpaudit.files.limits import CLASSES
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import FloatArray, Label

HEADER = ("label", "probability")


@dataclass(frozen=True)
class LabelPrior:
    """A prior as a file states it; whether it sums to 1 is checked where it is used.

    Attributes
    ----------
    labels : tuple, length k
        Distinct; numbers where all of them are written as numbers.
    probabilities : tuple of float, length k
    """

    labels: tuple[Label, ...]
    probabilities: tuple[float, ...]


def read_prior(path: str | os.PathLike[str], files: FileOptions = AS_FOUND) -> LabelPrior:
    """Read a prior from a CSV file with the columns ``label`` and ``probability``.

    Raises
    ------
    InputError
        If it is no such file, a probability is no number or a label occurs twice. Whether the
        probabilities are a distribution is checked where the prior is used.
    """
    file, rows = small_csv(path, "The prior", files)
    if file.names != HEADER:
        raise InputError(f"The prior {quoted(file.name)} must have the header {','.join(HEADER)}.")
    if any(len(row) != len(HEADER) for row in rows):
        raise InputError("Every row of a prior must hold one label and one probability.")
    labels = read_texts([row[0] for row in rows])
    forms(labels, "labels of the prior")
    try:
        return LabelPrior(labels, tuple(float(row[1]) for row in rows))
    except ValueError:
        raise InputError("The probabilities of a prior must be numbers.") from None


def split_labels(text: str) -> tuple[Label, ...]:
    """Read labels from ``A,B,…``; numbers where all of them are written as numbers.

    A label that holds a comma is written in double quotes.
    """
    try:
        (parts,) = csv.reader([text], skipinitialspace=True)
    except (csv.Error, ValueError):
        raise InputError("Labels must be written A,B,… on one line.") from None
    if len(parts) > CLASSES:
        raise InputError(f"There must be at most {CLASSES:,} labels. Got {len(parts):,}.")
    return read_texts([part.strip() for part in parts])


def numeric_column(
    source: str | os.PathLike[str], name: str, files: FileOptions = AS_FOUND
) -> FloatArray:
    """Read one column of numbers.

    Parameters
    ----------
    source : str or os.PathLike
        A Parquet or CSV file.
    name : str
        The column.
    files : FileOptions
        How text files are written.

    Returns
    -------
    float64 array of shape (n,)

    Raises
    ------
    InputError
        If there is no such column, it holds no numbers, or a value is missing; rows are counted.
    """
    table = open_table(source, files)
    if name not in table.names:
        raise missing_column(name, "label", table.names)
    column = next(table.columns([name]))[1]
    if not is_any(column.type, *NUMBERS):
        raise InputError(f"The column {quoted(name)} must hold numbers.")
    values = np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    check_complete(int(np.isnan(values).sum()), len(values), "a label")
    return values
