"""Free texts and dates as numbers: what is read out, and that models of the label use it."""

from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from ldpaudit.datasets.features import encode_features, read_out
from ldpaudit.models.label_model import fit_posterior

WORDS = np.array([f"w{i}" for i in range(300)])


def texts(n, rng, signs=None):
    rows = [" ".join(rng.choice(WORDS, 8)) for _ in range(n)]
    if signs is not None:
        rows = [f"{row} {'ill' if sign else 'well'}" for row, sign in zip(rows, signs, strict=True)]
    return pa.chunked_array([rows])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_free_texts_become_hashed_words(kind):
    column = texts(400, np.random.default_rng(0)).cast(kind)
    (block,) = read_out(column)
    assert block.shape == (400, 128)
    assert block.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(block, axis=1), 1.0, atol=1e-5)
    (again,) = read_out(column.cast(pa.string()).dictionary_encode())
    np.testing.assert_array_equal(block, again)


def test_categories_names_and_numbers_are_no_free_texts():
    rng = np.random.default_rng(1)
    few = pa.chunked_array([rng.choice(["a b c", "d e f"], 500)])
    keys = pa.chunked_array([[f"id-{i}" for i in range(500)]])
    assert read_out(few) == read_out(keys) == read_out(pa.chunked_array([np.arange(5)])) == []


def test_dates_give_month_day_and_weekday():
    column = pa.chunked_array([[date(2024, 2, 29), None]])
    (block,) = read_out(column)
    np.testing.assert_array_equal(block[0], [2, 29, 3])
    assert np.isnan(block[1]).all()
    (times,) = read_out(pa.chunked_array([[datetime(2024, 2, 29, 17, 5)]]))
    np.testing.assert_array_equal(times[0], [2, 29, 3, 17])


def accuracy(columns, truth):
    table = encode_features(columns, len(truth), [name for name, _ in columns]).table()
    half = len(truth) // 2
    first, rest = np.arange(half), np.arange(half, len(truth))
    rng = np.random.default_rng(0)
    model = fit_posterior(table.take(first), truth[:half], 2, rng, 1)
    return (model.predict(table.take(rest)).argmax(axis=1) == truth[rest]).mean()


def test_a_word_that_gives_the_label_away_is_learnt():
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 1200).astype(np.int32)
    assert accuracy([("note", texts(1200, rng, truth == 1))], truth) > 0.9


def test_a_weekday_that_gives_the_label_away_is_learnt():
    rng = np.random.default_rng(3)
    days = [date(2020, 1, 1) + timedelta(int(d)) for d in rng.integers(0, 1500, 2000)]
    truth = np.array([day.weekday() >= 5 for day in days], dtype=np.int32)
    assert accuracy([("seen", pa.chunked_array([days]))], truth) > 0.95


def test_a_table_without_some_columns_keeps_nothing_read_out():
    rng = np.random.default_rng(4)
    column = texts(300, rng)
    table = encode_features(
        [("a", column), ("b", pa.chunked_array([np.arange(300)]))], 300, ["a", "b"]
    ).table()
    assert table.expanded().numeric.shape[1] == 129
    assert table.take(np.arange(5)).expanded().numeric.shape == (5, 129)
    assert table.without([1]).extra is None
