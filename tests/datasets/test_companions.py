from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldpaudit.datasets import read_release
from ldpaudit.errors import InputError


def frame(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    town = rng.choice(["oslo", "rome", "bonn"], n)
    label = rng.choice(["no", "yes"], n)
    return pd.DataFrame({"x": rng.standard_normal(n), "town": town, "label": label})


def test_without_companions_there_are_none() -> None:
    release = read_release(frame()).release
    assert release.original is None
    assert release.synthetic is None


def test_values_are_coded_alike_in_all_tables() -> None:
    released = frame()
    original = released.drop(columns="label")
    original.loc[3, "town"] = "aarhus"
    original.loc[5, "x"] = 9.5
    synthetic = frame(20).assign(town="zagreb")
    release = read_release(released, original=original, synthetic=synthetic).release
    assert release.original is not None
    assert release.synthetic is not None
    same = release.original.categorical[:, 0] == release.features.categorical[:, 0]
    assert np.flatnonzero(~same).tolist() == [3]
    moved = release.original.numeric[:, 0] != release.features.numeric[:, 0]
    assert np.flatnonzero(moved).tolist() == [5]
    assert release.features.cardinalities == (5,)
    assert set(release.synthetic.features.categorical[:, 0]) == {4}
    names = [release.classes[code] for code in release.synthetic.labels]
    assert names == synthetic["label"].tolist()
    half = release.take(np.arange(30))
    assert half.original is not None
    assert len(half.original) == 30


def test_kinds_of_numbers_and_of_texts_may_differ() -> None:
    released = frame().assign(x=np.arange(60))
    original = released.drop(columns="label").assign(
        x=np.arange(60) + 0.5, town=pd.Categorical(released["town"])
    )
    release = read_release(released, original=original).release
    assert release.original is not None
    gap = release.original.numeric - release.features.numeric
    np.testing.assert_allclose(gap, 0.5)
    assert (release.original.categorical == release.features.categorical).all()


def test_original_is_joined_on_the_id() -> None:
    released = frame().assign(id=np.arange(60))
    shuffled = released.drop(columns="label").sample(frac=1, random_state=1)
    release = read_release(released, original=shuffled, id_column="id").release
    assert release.original is not None
    assert (release.original.numeric == release.features.numeric).all()


@pytest.mark.parametrize(
    ("companions", "message"),
    [
        ({"original": frame(59)}, "as many rows"),
        ({"original": frame().drop(columns="town")}, "column 2 of the release"),
        ({"original": frame().assign(x="secret-cell")}, "same kind"),
        ({"synthetic": frame().drop(columns="label")}, "label"),
        ({"synthetic": frame().assign(label="secret-cell")}, "60 of 60 rows hold another"),
        ({"synthetic": frame().iloc[:0]}, "no rows"),
    ],
)
def test_what_does_not_fit_is_refused(companions: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_release(frame(), **companions)
    assert "secret-cell" not in str(caught.value)


def test_an_id_without_match_is_refused() -> None:
    released = frame().assign(id=np.arange(60))
    with pytest.raises(InputError, match="original features; 1 of 60"):
        read_release(released, original=released.assign(id=np.arange(1, 61)), id_column="id")
