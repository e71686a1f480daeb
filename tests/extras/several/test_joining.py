"""Several releases are joined on their ids in memory, or in row order."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from extras.several.several_releases import years

from ldpaudit.datasets import read_release
from ldpaudit.errors import InputError
from ldpaudit.extras.several.reading import HashedIds, join_releases, same_features


def _joined(*tables, id_column="person"):
    hashed = HashedIds()
    files = join_releases([read_release(t, id_column=id_column, keyed=hashed) for t in tables])
    (column,) = files.columns.values()
    return column


def test_rows_are_joined_on_ids_in_any_order():
    made = years(n=300, leaving=20)
    joined = _joined(*made.tables)
    assert (len(joined.rows), len(joined.in_all)) == (320, 280)
    ids = [table["person"].to_pylist() for table in made.tables]
    for one, two in joined.rows[joined.in_all]:
        assert ids[0][one] == ids[1][two]
    assert (joined.rows == _joined(*made.tables).rows).all(), "the key shows in the order"


def test_numbers_in_one_file_match_texts_in_the_other():
    one = pd.DataFrame({"id": [1, 2, 3, 4], "x": [1.0, 2, 3, 4], "label": list("abab")})
    two = one.assign(id=one["id"].astype(str))[::-1]
    assert len(_joined(one, two, id_column="id").in_all) == 4


def test_the_key_is_drawn_anew_and_hides_ids():
    ids = pa.chunked_array([["anna", "bert"], ["anna"]])
    one, two = HashedIds(), HashedIds()
    assert one(ids)[0] == one(ids)[2] != one(ids)[1]
    assert one(ids)[0] != two(ids)[0]
    assert "anna" not in repr(one)
    assert one.key.hex() not in repr(one)


def test_ids_that_repeat_are_left_out():
    table = years(n=100).tables[0].to_pandas()
    twice = pd.concat([table, table.iloc[:5]], ignore_index=True)
    joined = _joined(twice, table)
    assert (joined.repeated, len(joined.rows)) == (5, 95)


def test_a_correction_may_be_joined_by_its_order():
    table = years(n=100).tables[0].to_pandas().drop(columns="person")
    corrected = table.assign(age=table["age"].where(table.index > 20, 0.0))
    joined = _joined(table, corrected, id_column=None)
    assert not joined.by_id
    rows = np.arange(100)
    same = same_features(*joined.releases, rows, rows)
    assert same.sum() == 79


def test_what_cannot_be_joined_is_said_in_one_line():
    table = years(n=100).tables[0].to_pandas()
    others = table.assign(person=[f"q{i}" for i in range(100)])
    with pytest.raises(InputError, match="no people in common"):
        _joined(table, others)
    bare = table.drop(columns="person")
    with pytest.raises(InputError, match="90 to 100 rows"):
        _joined(bare, bare.iloc[:90], id_column=None)
    with pytest.raises(InputError, match="no row has the same features"):
        _joined(bare, bare.assign(age=bare["age"] + 1), id_column=None)
    missing = table.assign(person=table["person"].where(table.index > 3))
    with pytest.raises(InputError, match="must have an id"):
        _joined(table, missing)


def test_other_classes_are_refused():
    table = years(n=100).tables[0].to_pandas()
    third = table.assign(label=["maybe", *table["label"][1:]])
    with pytest.raises(InputError, match="release 1 has 2, release 2 has 3"):
        _joined(table, third)


def test_categories_are_the_same_whatever_their_codes():
    one = pd.DataFrame({"x": ["a", "b", "c"] * 10, "label": list("uv") * 15})
    two = one.assign(x=pd.Categorical(one["x"], categories=["c", "b", "a"]))
    two.loc[0, "x"] = "b"
    joined = _joined(one, two, id_column=None)
    same = same_features(*joined.releases, np.arange(30), np.arange(30))
    assert same is not None
    assert list(np.flatnonzero(~same)) == [0]
