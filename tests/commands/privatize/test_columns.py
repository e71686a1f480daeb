"""Columns that should not leave the house: each fault is refused or warned of, and nothing else."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands.privatize.conftest import Command

from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.commands.privatize.scan import released_as_they_are, told_together
from ldpaudit.commands.privatize.work import privatize
from ldpaudit.errors import InputError

N = 3000
RNG = np.random.default_rng(5)
CODES = RNG.integers(0, 3, N)
LABEL = np.array(["A1", "B1", "C1"])[CODES]
ROW = np.arange(N)


def table(**more: Any) -> pa.Table:
    """Return an honest table, with further columns."""
    plain = {"x": RNG.normal(size=N) + CODES, "town": RNG.choice(["oslo", "rome"], N)}
    columns = {**plain, "label": LABEL, **more}
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def released(data: pa.Table, folder: Path, **options: Any) -> tuple[str, ...]:
    """Release a table; return the warnings."""
    pq.write_table(data, folder / "data.parquet", row_group_size=1000)
    options = {"mechanism": "randomized-response", "epsilon": 1.0} | options
    return privatize(
        PrivatizeRequest(str(folder / "data.parquet"), folder / "out.parquet", **options)
    ).warnings


REFUSED = {
    "copy": LABEL,
    "category": pd.Categorical(LABEL),
    "copy with a value missing": [None if text == "C1" else text for text in LABEL],
    "code": CODES * 7,
    "salted hash": np.array([hash((text, "salt")) for text in LABEL]),
    "finer code": [f"{text}{i % 10}" for i, text in enumerate(LABEL)],
    "many finer codes": CODES * 5000 + RNG.integers(0, 400, N),
    "flag": LABEL == "A1",
    "list": pa.array([[text] for text in LABEL]),
    "list of codes": pa.array([[0, code] for code in CODES.tolist()]),
    "structure": pa.array([{"a": 1, "b": text} for text in LABEL]),
    "sum with an offset": CODES + RNG.random(N) * 0.9,
}
"""Each tells the label in every row."""


@pytest.mark.parametrize("case", REFUSED)
def test_what_tells_the_label_in_every_row_is_refused(case: str, tmp_path: Path) -> None:
    data = table(secret=REFUSED[case])
    data = data if case != "copy" else data.sort_by("label")
    with pytest.raises(
        InputError, match=r"Column 4 of 4 tells the true label in every row.*--keep"
    ):
        released(data, tmp_path)
    assert not (tmp_path / "out.parquet").exists()
    assert case == "copy" or released(data, tmp_path, drop=("secret",)) == ()


def test_a_refused_column_can_be_kept(tmp_path: Path) -> None:
    assert released(table(secret=REFUSED["finer code"]), tmp_path, keep=("secret",)) == ()
    assert "secret" in pq.read_schema(tmp_path / "out.parquet").names


def test_a_number_that_decides_a_rare_label_is_refused(tmp_path: Path) -> None:
    claims = np.random.default_rng(0).choice(6, N, p=[0.8, 0.15, 0.04, 0.005, 0.003, 0.002])
    data = pa.table({"claims": claims, "x": RNG.normal(size=N), "label": claims >= 3})
    with pytest.raises(InputError, match="Column 1 of 3 tells"):
        released(data, tmp_path)


def test_the_same_number_up_to_a_factor_and_an_offset_is_refused(tmp_path: Path) -> None:
    revenue = RNG.random(N) * 400
    data = pa.table({"euro": revenue * 1.1 + 3, "x": RNG.normal(size=N), "label": revenue})
    options = {"mechanism": "laplace", "labels": "0:400"}
    with pytest.raises(InputError, match="Column 1 of 3 tells"):
        released(data, tmp_path, **options)
    almost = data.set_column(0, "euro", pa.array(revenue + RNG.normal(size=N) * 0.01))
    (warning,) = released(almost, tmp_path, **options)
    assert "Column 1 of 3 reveals at least 98 %" in warning


WARNED = {
    "near copy": (np.where(RNG.random(N) < 0.99, LABEL, "A1"), "reveals at least 98 %"),
    "partly missing": ([t if i % 60 else None for i, t in enumerate(LABEL)], "reveals at least"),
    "one row differs": (
        np.where(np.flatnonzero(CODES)[0] == ROW, "A1", LABEL),
        "reveals at least 98 %",
    ),
    "plus the row's number": (CODES + ROW, "reveals at least 98 %"),
    "named in a text": (
        [f"Person {i} has {t}" for i, t in enumerate(LABEL)],
        "reveals at least 98",
    ),
    "part of a name": ([f"{t}-{i}" for i, t in enumerate(LABEL)], "reveals at least 98 %"),
    "row before": (np.roll(LABEL, 1), "rows next to its own"),
    "two rows on": (np.roll(CODES, -2), "rows next to its own"),
    "identifier": (RNG.permutation(N) + 10**6, "identifier"),
    "free text": ([f"seen on ward {i} and sent home" for i in ROW], "free text"),
    "dates": (pd.date_range("2019-01-01", periods=N).date, "exact dates"),
    "index": (ROW, "numbers the rows"),
}
"""What is warned of, and by which words."""


def test_labels_that_differ_in_spelling_are_warned_of(tmp_path: Path) -> None:
    spelt = RNG.choice(["a1 ", "A1", "B1"], N)
    (warning,) = released(table(label=spelt), tmp_path)
    assert warning.startswith("1 of the 3 labels differ from another only in case or spaces")
    assert "A1" not in warning


@pytest.mark.parametrize("case", WARNED)
def test_what_may_give_people_away_is_warned_of(case: str, tmp_path: Path) -> None:
    values, words = WARNED[case]
    warnings = released(table(secret=values), tmp_path)
    assert any("olumn 4 of 4" in text and words in text for text in warnings)
    assert all("secret" not in text and "olumn 1" not in text for text in warnings)
    (tmp_path / "out.parquet").unlink()
    assert released(table(secret=values), tmp_path, keep=("secret",)) == ()


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_an_index_of_pandas_is_known_by_its_name(name: str, tmp_path: Path) -> None:
    (warning,) = released(table(**{name: RNG.integers(0, 9, N)}), tmp_path)
    assert "numbers the rows" in warning


def test_the_index_of_a_csv_file_is_warned_of(tmp_path: Path, command: Command) -> None:
    table().to_pandas().to_csv(tmp_path / "data.csv")
    words = ("--mechanism", "rr", "--epsilon", "1", "-o", tmp_path / "out.parquet")
    status, printed = command(tmp_path / "data.csv", *words)
    assert status == 0
    assert "numbers the rows" in printed


def test_an_honest_table_gives_no_warning(tmp_path: Path) -> None:
    more = {"constant": np.ones(N), "lists": [[1.0, 2.0]] * N, "none": pa.nulls(N)}
    infinite = RNG.choice([np.inf, -np.inf], N)
    assert released(table(**more, infinite=infinite), tmp_path) == ()


def test_sorted_rows_are_warned_of(tmp_path: Path) -> None:
    (warning,) = released(table().sort_by("label"), tmp_path)
    assert "order of the rows" in warning


def test_a_mechanism_that_gives_every_row_the_same_label_is_warned_of(
    tmp_path: Path, command: Command
) -> None:
    labels = np.random.default_rng(1).choice(["a", "b", "c"], 2_000, p=[0.95, 0.03, 0.02])
    pq.write_table(pa.table({"x": np.arange(2_000.0), "label": labels}), tmp_path / "d.parquet")
    (tmp_path / "prior.csv").write_text("label,probability\na,0.95\nb,0.03\nc,0.02\n")
    words = ("--mechanism", "rr-top-k", "--epsilon", "0.1", "--prior", tmp_path / "prior.csv")
    status, printed = command(tmp_path / "d.parquet", "-o", tmp_path / "r.parquet", *words)
    assert status == 0, printed
    assert "every row the same label" in printed


def test_a_large_epsilon_and_few_rows_are_warned_of(tmp_path: Path) -> None:
    large, few = released(table().slice(0, 90), tmp_path, epsilon=6.0)
    assert "ε = 6 the mechanism hides little: 99.5 % of labels are released as they are" in large
    assert "90 rows" in few


@pytest.mark.parametrize("ordered", [False, True])
def test_an_unused_category_does_not_stay_in_the_file(ordered: bool, tmp_path: Path) -> None:
    codes = np.minimum(RNG.integers(0, 3, N), ROW // 1000)  # Row groups use different values.
    values = pd.Categorical.from_codes(codes, ["u", "v", "w", "UNUSED_SECRET"], ordered=ordered)
    missing = pd.Series(values)
    missing[5] = None
    data = table(kind=pa.array(values), holes=pa.array(missing))
    assert released(data, tmp_path) == ()
    assert b"UNUSED_SECRET" not in (tmp_path / "out.parquet").read_bytes()
    after = pq.read_table(tmp_path / "out.parquet")
    for name in ("kind", "holes"):
        assert after[name].to_pylist() == data[name].to_pylist()
        assert after[name].type.ordered == ordered


def test_an_unused_category_inside_a_list_or_a_structure_does_not_stay(tmp_path: Path) -> None:
    codes = pa.array(RNG.integers(0, 2, N), pa.int8())
    values = pa.DictionaryArray.from_arrays(codes, pa.array(["u", "v", "UNUSED_SECRET"]))
    lists = pa.ListArray.from_arrays(pa.array(np.arange(N + 1), pa.int32()), values)
    data = table(lists=lists, structure=pa.StructArray.from_arrays([values], ["a"])).slice(0, 900)
    released(data, tmp_path)
    assert b"UNUSED_SECRET" not in (tmp_path / "out.parquet").read_bytes()
    after = pq.read_table(tmp_path / "out.parquet")
    assert after["lists"].to_pylist() == data["lists"].to_pylist()
    assert after["structure"].to_pylist() == data["structure"].to_pylist()


def test_a_rare_label_beside_a_column_of_many_values_is_not_refused() -> None:
    rng = np.random.default_rng(1)
    label = pa.array((np.arange(N) < 5).astype(int)[rng.permutation(N)])
    zips = pa.array(rng.integers(0, 2000, N))
    both = pa.table({"zip": zips, "label": label})
    assert released_as_they_are(both, "label", (), both.schema.names).deciding() == []


def test_columns_that_tell_the_label_together_are_warned_of(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    mask = rng.integers(0, 2, N)
    two = np.where(rng.random(N) < 0.5, "A1", "B1")
    hidden = ((two == "B1").astype(int) + mask) % 2
    data = table(label=two, mask=mask, hidden=hidden)
    assert any("together reveal true labels" in text for text in released(data, tmp_path))
    lab = np.where(two == "B1", rng.normal(7.5, 0.6, N), rng.normal(5.3, 0.6, N))
    warned = released(table(label=two, a1c=lab), tmp_path, overwrite=True)
    assert any("together reveal" in text for text in warned)
    vague = np.where(two == "B1", rng.normal(6.5, 0.6, N), rng.normal(5.3, 0.6, N))
    (tmp_path / "out.parquet").unlink()
    assert released(table(label=two, a1c=vague), tmp_path) == ()


def test_a_narrow_band_of_one_column_is_told_and_an_infinite_number_is_a_missing_one() -> None:
    rng = np.random.default_rng(3)
    wide, holes = rng.random((2, 2000))
    holes[rng.random(2000) < 0.1] = np.inf
    decided = ((np.abs(wide - 0.5) < 0.1) ^ np.isinf(holes)).astype(np.int32)
    told, by_chance = (
        told_together([wide, holes], labels) for labels in (decided, rng.integers(0, 2, 2000))
    )
    assert told is not None
    assert by_chance is not None
    assert by_chance < 0.6 < 0.98 < told
