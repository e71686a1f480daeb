from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ldpaudit.commands.black_box.estimators.outputs import as_outputs, joined
from ldpaudit.commands.black_box.estimators.views import fit_binning, fit_views
from ldpaudit.errors import InputError


@pytest.mark.parametrize(
    ("returned", "shape", "kind"),
    [
        (np.arange(3), (3, 1), "i"),
        (np.ones((3, 2, 2)), (3, 4), "f"),
        ([1, 2, 3], (3, 1), "i"),
        ((1.5, 2, 3), (3, 1), "f"),
        (["a", "b", "a"], (3, 1), "O"),
        (np.array(["a", "b", "a"]), (3, 1), "U"),
        ([(1, 2), (3, 4), (5, 6)], (3, 2), "i"),
        ([(1, [0, 1]), (3, [1, 1]), (5, [0, 0])], (3, 3), "i"),
        ([("x", 1), ("y", 2), ("z", 3)], (3, 2), "O"),
        ([{1, 2}, {3}, set()], (3, 1), "O"),
        ([[1], [2, 3], []], (3, 1), "O"),
        ([np.ones(4), np.ones(4), np.ones(4)], (3, 4), "f"),
        ([2**80, 1, 2], (3, 1), "O"),
        ([Fraction(1, 3)] * 3, (3, 1), "O"),
        (np.array([(1, 2.0)] * 3, dtype=[("a", "i4"), ("b", "f8")]), (3, 2), "f"),
        (np.array(["2020-01-01"] * 3, dtype="M8[D]"), (3, 1), "i"),
    ],
)
def test_what_can_be_read(returned: Any, shape: tuple[int, int], kind: str) -> None:
    table = as_outputs(returned, 3)
    assert table.shape == shape
    assert table.dtype.kind == kind


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "got NoneType"),
        (3.0, "got float"),
        ("abc", "got str"),
        (iter([1, 2, 3]), "got list_iterator"),
        ([1, 2], "must return 3 outputs, as requested. Got 2"),
        (np.ones((2, 3)), "must return 3 outputs, as requested. Got 2"),
        (np.float64(3), "a single value"),
        ([{}, {}, {}], "got dict"),
        (np.ones(3, dtype=complex), "got complex128"),
        (np.empty((3, 0)), "at least one entry"),
    ],
)
def test_what_cannot(returned: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        as_outputs(returned, 3)


def test_calls_must_agree() -> None:
    with pytest.raises(InputError, match="2 in one call and 3 in another"):
        joined([np.ones((4, 2)), np.ones((4, 3))])
    assert joined([np.ones((1, 1)), np.array([["a"]])]).tolist() == [[1.0], ["a"]]


def test_frequent_numbers_have_bins_of_their_own() -> None:
    rng = np.random.default_rng(1)
    column = np.where(rng.random(5000) < 0.3, 0.0, rng.normal(size=5000))
    binning = fit_binning(column)
    zero = int(binning.codes(np.zeros(1))[0])
    assert binning.describe(zero) == "= 0"
    codes = binning.codes(column)
    assert (codes == zero).sum() == (column == 0).sum()
    assert codes.max() < binning.bins
    assert np.all(codes > 0)
    assert "∞" in binning.describe(binning.bins - 1)


def test_unseen_values_have_bin_zero() -> None:
    assert fit_binning(np.array([1, 2, 2])).codes(np.array([3, 2])).tolist() == [0, 2]
    text = fit_binning(np.array(["a", "b", "b"], dtype=object))
    assert text.codes(np.array(["c", "b"], dtype=object)).tolist() == [0, 1]
    assert text.describe(0) == "any other"


def test_views_that_suit_the_outputs() -> None:
    rng = np.random.default_rng(1)

    def names(table: Any) -> list[str]:
        return [view.name for view in fit_views([table])]

    assert names(rng.normal(size=(500, 1))) == ["entries"]
    assert names(rng.normal(size=(500, 3))) == ["entries", "deviations"]
    assert names(rng.integers(0, 2, (500, 3))) == ["entries", "outputs"]
    assert names(rng.integers(0, 25, (5000, 7))) == ["entries", "items"]
    assert names(rng.integers(0, 2, (5000, 40))) == ["entries"]
