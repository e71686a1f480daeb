"""Releases of bags: one released sum or proportion in every row of a bag."""

from typing import Final

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.coding import BagReading
from ldpaudit.datasets.domains import Domains, EncodedLabels, true_codes
from ldpaudit.datasets.formats.columns import check_complete, decoded
from ldpaudit.datasets.labels import LabelColumn
from ldpaudit.datasets.names import missing_column
from ldpaudit.datasets.numbers import read_numbers
from ldpaudit.errors import InputError
from ldpaudit.release import Bags, FloatArray, IndexArray

_ROUNDING: Final = 0.05
"""How far from a whole number a sum may be that was written as a proportion."""
_SAME: Final = 1e-6
_OUTPUTS: Final = ("at most half of the bag", "more than half of the bag")


def bag_column(bags: BagReading | None, names: tuple[str, ...]) -> str | None:
    """Return the column that says which rows belong together; None where rows are independent.

    Raises
    ------
    InputError
        If the release has no such column.
    """
    if bags is None:
        return None
    if bags.bag not in names:
        raise missing_column(bags.bag, "bag", names, typed=False)
    return bags.bag


def read_bags(
    reading: BagReading, label: pa.ChunkedArray, bag: pa.ChunkedArray, truth: LabelColumn | None
) -> tuple[EncodedLabels, Bags]:
    """Read the labels of a release of bags.

    Parameters
    ----------
    reading : BagReading
        What the declared mechanism says about its sums; of two classes the second is counted.
    label : pyarrow.ChunkedArray of n numbers
        The released proportion or sum, the same in every row of a bag.
    bag : pyarrow.ChunkedArray of n values
        Which bag a row belongs to.
    truth : LabelColumn or None

    Returns
    -------
    EncodedLabels
        The released codes say whether more than half of the bag has the second class.
    Bags

    Raises
    ------
    InputError
        If a row has no bag, a bag has one row only, its rows differ in the released value, or that
        value cannot be.
    """
    members, sizes = _members(bag)
    values = read_numbers(label, "released")
    sums = _one_per_bag(values, members, sizes)
    if reading.statistic == "proportion":
        sums = sums * sizes
    if reading.sums_are_whole:
        _check_sums(sums, sizes, reading)
        sums = np.rint(sums)
    released = (sums > sizes / 2).astype(np.int32)[members]
    codes = true_codes(truth, reading.classes)
    return EncodedLabels(Domains(reading.classes, _OUTPUTS), released, codes), Bags(members, sums)


def _members(column: pa.ChunkedArray) -> tuple[IndexArray, IndexArray]:
    column = decoded(column)
    check_complete(column.null_count, len(column), "a bag")
    encoded = column.dictionary_encode().combine_chunks()
    members = encoded.indices.to_numpy().astype(np.int64)
    sizes = np.bincount(members, minlength=len(encoded.dictionary))
    single = int((sizes < 2).sum())
    if single:
        raise InputError(
            f"A bag must have at least 2 rows, since the sum of one label is the label; {single} "
            f"of {len(sizes)} bags have one."
        )
    return members, sizes


def _one_per_bag(values: FloatArray, members: IndexArray, sizes: IndexArray) -> FloatArray:
    low, high = np.full(len(sizes), np.inf), np.full(len(sizes), -np.inf)
    np.minimum.at(low, members, values)
    np.maximum.at(high, members, values)
    differ = int((high - low > _SAME * np.maximum(np.abs(high), 1.0)).sum())
    if differ:
        raise InputError(
            f"Every row of a bag must hold the same released value; in {differ} of {len(sizes)} "
            "bags they differ."
        )
    return low


def _check_sums(sums: FloatArray, sizes: IndexArray, reading: BagReading) -> None:
    off = np.abs(sums - np.rint(sums)) > _ROUNDING
    words = "a whole number of rows"
    if reading.sums_fit_the_bag:
        off |= (np.rint(sums) < 0) | (np.rint(sums) > sizes)
        words += " between 0 and the bag's size"
    if off.any():
        raise InputError(
            f"Every bag's released value, a proportion times the bag's size, must be {words}, as "
            f"declared; in {int(off.sum())} of {len(sums)} bags it is not."
        )
