"""Tables as a program holds them, and files with names that a shell would take otherwise."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ldpaudit
from ldpaudit.datasets.formats import open_table
from ldpaudit.errors import InputError

N = 400
pytestmark = pytest.mark.filterwarnings("ignore:Few people are in this table")


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame({"age": rng.integers(18, 90, N), "label": rng.choice(["a", "b"], N)})


def audited(table: object, **claim: object) -> ldpaudit.AuditResult:
    stated = claim or {"label": "label", "mechanism": "rr", "epsilon": 1.0}
    return ldpaudit.audit(table, only=["mechanism"], **stated)


def test_bins_of_pandas_are_categories() -> None:
    weeks = np.random.default_rng(2).integers(1, 99, N)
    binned = frame().assign(label=pd.cut(weeks, [0, 40, 60, 99]))
    released = ldpaudit.privatize(binned, "rr", label="label", epsilon=1.0)
    assert set(released["label"].astype(str)) == {"(0, 40]", "(40, 60]", "(60, 99]"}
    assert audited(released, label="label").run is not None
    plain = frame().assign(age=lambda d: pd.IntervalIndex(pd.cut(d["age"], 4)))
    assert audited(plain).run is not None


def test_a_bin_that_is_missing_stays_missing() -> None:
    outside = frame().assign(label=lambda d: pd.cut(d["age"], [0, 40, 60]))
    with pytest.raises(InputError, match="Every row must have a label"):
        ldpaudit.privatize(outside, "rr", label="label", epsilon=1.0)


def test_a_stream_is_read_once() -> None:
    stream = pa.Table.from_pandas(frame()).to_reader()
    assert audited(stream)["mechanism.epsilon"].value == 1.0


@pytest.mark.parametrize("name", ["a::b.csv", "file:x.csv", "::error ::x.csv", "~x.csv", "-x.csv"])
def test_a_file_is_found_by_its_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame().to_csv(tmp_path / name, index=False)
    assert open_table(name).names == ("age", "label")


def test_a_name_in_no_utf_8_is_said_to_be_one() -> None:
    with pytest.raises(InputError, match=r"^The name of 'bad.*' is not in UTF-8; rename the file"):
        open_table("bad\udcff.csv")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("threads", "2"),
        ("threads", True),
        ("timeout", "1"),
        ("exact", "no"),
        ("seed", 1.5),
        ("seed", "one"),
        ("policy", {"claim": {"epsilon": 1.0}}),
    ],
)
def test_a_value_of_another_type_is_one_line(option: str, value: object) -> None:
    with pytest.raises(InputError, match=option):
        audited(frame(), label="label", mechanism="rr", epsilon=1.0, **{option: value})


def test_numbers_of_numpy_are_numbers() -> None:
    stated = {"label": "label", "mechanism": "rr", "epsilon": np.float32(1.0)}
    options = {"seed": np.int64(1), "threads": np.int32(1), "exact": np.bool_(0)}
    assert audited(frame(), **stated, **options)["mechanism.epsilon"].value == 1.0
