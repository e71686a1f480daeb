"""Probabilities of labels: priors in small CSV files, and one of each class for each row."""

import csv
import os
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ldpaudit.arrays import FloatArray
from ldpaudit.datasets.formats.columns import NUMBERS, check_complete, is_any
from ldpaudit.datasets.formats.csv_file import small_csv
from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.datasets.labels import forms, read_texts
from ldpaudit.datasets.names import missing_column, quoted
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import Label, Release
from ldpaudit.work.limits import CLASSES

_HEADER: Final = ("label", "probability")
_TOLERANCE: Final = 1e-3


@dataclass(frozen=True)
class LabelPrior:
    """A prior as a file states it; whether it sums to 1 is checked where it is used."""

    labels: tuple[Label, ...]
    probabilities: tuple[float, ...]


def read_prior(path: str | os.PathLike[str], files: FileOptions = AS_FOUND) -> LabelPrior:
    """Read a prior from a CSV file with the columns ``label`` and ``probability`` (InputError)."""
    file, rows = small_csv(path, "The prior", files)
    if file.names != _HEADER:
        raise InputError(f"The prior {quoted(file.name)} must have the header {','.join(_HEADER)}.")
    if any(len(row) != len(_HEADER) for row in rows):
        raise InputError("Every row of a prior must hold one label and one probability.")
    labels = read_texts([row[0] for row in rows])
    forms(labels, "labels of the prior")
    try:
        return LabelPrior(labels, tuple(float(row[1]) for row in rows))
    except ValueError:
        raise InputError("The probabilities of a prior must be numbers.") from None


def split_labels(text: str) -> tuple[Label, ...]:
    """Read labels from ``A,B,…``, numbers where all are; one with a comma stands in quotes."""
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
    """Read one column of n numbers, float64 of shape (n,), without a missing one (InputError)."""
    table = open_table(source, files)
    if name not in table.names:
        raise missing_column(name, "label", table.names)
    column = next(table.columns([name]))[1]
    if not is_any(column.type, *NUMBERS):
        raise InputError(f"The column {quoted(name)} must hold numbers.")
    values = np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    check_complete(int(np.isnan(values).sum()), len(values), "a label")
    return values


def with_canaries(release: Release, source: Any, files: FileOptions = AS_FOUND) -> Release:
    """Return the release with the probabilities that the auditor drew canaries' labels with.

    A table has the release's row order and a column named after each class; a row without any
    number is no canary. An array (n, k) has the release's order of classes, NaN for no canary.
    """
    if source is None:
        return release
    values = _class_columns(source, release, "The canaries'", files)
    drawn = ~np.isnan(values).all(axis=1)
    values[drawn] = _distributions(values[drawn], "The canaries'")
    return replace(release, canaries=values)


def class_probabilities(
    source: Any, release: Release, whose: str, files: FileOptions = AS_FOUND
) -> FloatArray:
    """Return probabilities of each class for each row of a release, float64 (n, k).

    A table has a column named after each class, an array the release's order of classes.
    """
    return _distributions(_class_columns(source, release, whose, files), whose)


def with_public_posterior(release: Release, source: Any, files: FileOptions = AS_FOUND) -> Release:
    """Return the release with P̂(y | x) of the public model that model-based noise was drawn with.

    A table has a column named after each class, and the release's row order; an array (n, k) has
    the declaration's order of classes, or without one the release's.
    """
    if source is None:
        return release
    values = _class_columns(source, release, "The public model's", files)
    declared = release.declaration and release.declaration.parameters.get("classes")
    if isinstance(source, np.ndarray) and declared and set(declared) == set(release.classes):
        values = values[:, [list(declared).index(label) for label in release.classes]]
    return replace(release, public_posterior=_distributions(values, "The public model's"))


def _class_columns(source: Any, release: Release, whose: str, files: FileOptions) -> FloatArray:
    """Return a table's columns in the order of the release's classes, float64 (n, k)."""
    values, shape = source, (len(release), len(release.classes))
    if not isinstance(source, np.ndarray):
        table, names = open_table(source, files), [str(label) for label in release.classes]
        missing = sum(name not in table.names for name in names)
        if missing:
            raise InputError(
                f"{whose} table must have a column named after each of {len(names)} classes; "
                f"{missing} are missing."
            )
        try:
            columns = [column.to_numpy().astype(np.float64) for _, column in table.columns(names)]
        except (TypeError, ValueError):
            raise InputError(f"{whose} table must hold numbers.") from None
        values = np.stack(columns, axis=1)
    if release.places is not None:  # Those rows were read of the release.
        values = values[release.places[release.places < len(values)]]
    if values.shape != shape:
        raise InputError(
            f"{whose} table must have {shape[0]} rows, in the release's order, and a probability "
            f"for each of {shape[1]} classes. Got shape {values.shape} instead."
        )
    return np.asarray(values.astype(np.float64))


def _distributions(values: FloatArray, whose: str) -> FloatArray:
    """Return rows that sum to 1 up to a thousandth scaled to sum to 1 (InputError)."""
    total = values.sum(axis=1, keepdims=True)
    good = (values >= 0).all(axis=1) & (np.abs(total[:, 0] - 1) <= _TOLERANCE)
    if not good.all():
        raise InputError(
            f"{whose} probabilities must be given for every class and sum to 1; in "
            f"{int((~good).sum())} of {len(values)} rows they do not."
        )
    return np.asarray(values / total)
