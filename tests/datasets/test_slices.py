import numpy as np
import pandas as pd
import pytest

from ldpaudit.datasets.groups import joint_slices, merged, read_slices
from ldpaudit.datasets.probabilities import with_public_posterior
from ldpaudit.errors import InputError
from ldpaudit.release import Declaration, FeatureTable, Release, ReleasedLabels


def frame(n=1000):
    rng = np.random.default_rng(0)
    region = np.repeat(["north", "south", "east", "west"], [n // 2, n // 4, n // 5, n // 20])
    return pd.DataFrame({"region": region, "age": rng.normal(size=n), "few": region == "west"})


def test_small_slices_are_merged_and_none_is_told_by_subtraction():
    (found,) = read_slices(frame(), ["region"])
    # West has 50 rows; east joins it, since the rest of 50 would be small.
    assert found.names == ("north", "south", "all others")
    assert np.bincount(found.codes).tolist() == [500, 250, 250]


def test_numbers_are_cut_at_their_quartiles():
    (found,) = read_slices(frame(), ["age"])
    assert np.bincount(found.codes).tolist() == [250] * 4


def test_many_slices_are_merged_into_the_last():
    codes = np.repeat(np.arange(30, dtype=np.int32), 100)
    found = merged("x", codes, [str(i) for i in range(30)])
    assert len(found) == 12
    assert np.bincount(found.codes)[-1] == 1900


@pytest.mark.parametrize(
    ("columns", "word"), [(["nowhere"], "no column"), (["few"], "at least two slices")]
)
def test_what_cannot_be_sliced(columns, word):
    with pytest.raises(InputError, match=word):
        read_slices(frame(), columns)


def test_missing_values_are_a_slice_and_columns_combine():
    table = pd.DataFrame({"a": [None] * 200 + ["x"] * 200, "b": ["u", "v"] * 200})
    slices = read_slices(table, ["a", "b"])
    joint = joint_slices(slices, np.arange(400))
    assert np.bincount(joint).tolist() == [100] * 4
    assert joint_slices((), np.arange(400)) is None


def released(classes):
    none = FeatureTable(np.zeros((3, 0), np.float32), np.zeros((3, 0), np.int32), (), 0)
    labels = ReleasedLabels(np.array([0, 1, 0], dtype=np.int32))
    declaration = Declaration("model-based-rr", {"classes": ["no", "yes"], "lambda": 0.5})
    return Release(none, labels, classes, classes, declaration=declaration)


def test_a_public_model_is_read_in_the_order_of_the_classes():
    values = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    turned = released(("yes", "no"))
    assert with_public_posterior(turned, None) is turned
    for source in (values, pd.DataFrame(values, columns=["no", "yes"])):
        found = with_public_posterior(turned, source).public_posterior
        np.testing.assert_allclose(found, values[:, ::-1])


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (np.ones((2, 2)) / 2, "3 rows"),
        (np.ones((3, 2)), "sum to 1; in 3"),
        (pd.DataFrame({"no": [1.0] * 3}), "1 are missing"),
        (pd.DataFrame({"no": ["a"] * 3, "yes": ["b"] * 3}), "numbers"),
    ],
)
def test_a_public_model_that_is_none(values, word):
    with pytest.raises(InputError, match=word):
        with_public_posterior(released(("no", "yes")), values)
