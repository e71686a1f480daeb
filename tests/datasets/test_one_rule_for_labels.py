"""From cell to label by one rule: what ``privatize`` writes, ``run`` reads, in every format."""

import datetime
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ldpaudit.datasets.labels import labels_of_text, positions
from ldpaudit.datasets.reading import read_release
from ldpaudit.errors import OutputError
from ldpaudit.extras.release.privatize.request import PrivatizeRequest
from ldpaudit.extras.release.privatize.work import privatize
from ldpaudit.options import FileOptions

pytestmark = pytest.mark.usefixtures("unscanned")
ROWS = 240
DAY = datetime.date(2020, 1, 1)
HOUR = datetime.datetime(2020, 1, 1, 10)
LABELS = {
    "text": ["no", "yes", "no answer"],
    "whole": [1, 2, 30],
    "negative": [-1, 0, 1],
    "booleans": [True, False],
    "codes": ["01", "1", "010"],
    "zeros at the end": ["250.0", "250.00", "401.9"],
    "zeros and none": ["250", "250.0", "250.00"],
    "two decimals": ["1.00", "2.00", "3.50"],
    "exponents": ["1e+05", "200000", "3e+05"],
    "halves": [0.5, 1.5, 2.0],
    "whole floats": [1.0, 2.0, 3.0],
    "days": [DAY, DAY.replace(day=2)],
    "times": [HOUR, HOUR.replace(hour=11)],
    "days as text": ["2020-01-01", "2020-02-01"],
    "times as text": ["2020-01-01 10:00", "2020-01-01 11:30"],
    "times with seconds as text": ["2020-01-01 10:00:00", "2020-01-01 11:30:59"],
    "long": ["12345678901234567890", "12345678901234567891"],
    "ranges": ["<=50K", ">50K"],
    "commas": ["a,b", "c;d", 'e"f'],
    "spaces": ["a", "a b", "b "],
}
FORMATS = ["csv", "csv.gz", "de.csv", "tsv", "parquet", "feather", "jsonl"]
# Written and read as one of the others is: a few kinds of labels, the rest by `make validate`. So
# are dta and xpt, by the library that writes sav.
LIKE_OTHERS = ("csv.gz", "tsv", "de.csv", "feather")
FEW_KINDS = ("text", "whole", "zeros at the end", "two decimals", "times", "commas")
PACKED = ["csv.zip", "tsv.bz2", "csv.zst", "txt.xz", "jsonl.zip", "zsav"]
OTHERS = ["orc", "dta", "sav", "xpt"]


def source_of(labels, form, folder):
    """Return a file of the labels: letter for letter, or in the types of the format."""
    path = folder / f"data.{form}"
    rows = [labels[i % len(labels)] for i in range(ROWS)]
    frame = pd.DataFrame({"x": np.arange(ROWS) % 7 + 0.25, "label": rows})
    text = {"index": False, "date_format": None}
    if form == "de.csv":
        if all(isinstance(label, str) for label in labels):
            number = frame["label"].str.fullmatch(r"[0-9.]+")
            commas = frame["label"].str.replace(".", ",")
            frame["label"] = frame["label"].where(~number, commas)
        frame.to_csv(path, sep=";", decimal=",", **text)
    elif form.startswith(("csv", "tsv")):
        frame.to_csv(path, sep="\t" if form == "tsv" else ",", **text)
    elif form == "parquet":
        frame.to_parquet(path)
    elif form == "feather":
        frame.to_feather(path)
    else:
        frame["label"] = [v if isinstance(v, bool | int | float | str) else str(v) for v in rows]
        frame.to_json(path, orient="records", lines=True)
    return path


def marked(kind, form, long):
    """Return a case, which only `make validate` runs if it is a long one."""
    return pytest.param(kind, form, marks=pytest.mark.validate if long else ())


@pytest.mark.parametrize(
    ("kind", "form"),
    [marked(kind, form, form in LIKE_OTHERS and kind not in FEW_KINDS)
     for kind in LABELS for form in FORMATS],
)  # fmt: skip
def test_a_release_fits_its_source_and_its_secret(kind, form, tmp_path):
    fits(LABELS[kind], source_of(LABELS[kind], form, tmp_path), form.removeprefix("de."))


@pytest.mark.parametrize(
    ("kind", "form"),
    [marked(kind, form, kind not in ("two decimals", "commas"))
     for kind in ("text", "whole", "two decimals", "commas") for form in PACKED],
)  # fmt: skip
def test_a_packed_release_fits_its_source(kind, form, tmp_path):
    bare = {"txt": "csv", "zsav": "csv"}.get(form.partition(".")[0], form.partition(".")[0])
    fits(LABELS[kind], source_of(LABELS[kind], bare, tmp_path), form)


@pytest.mark.parametrize(
    ("kind", "form"),
    [marked(kind, form, form in ("dta", "xpt") and kind not in (*FEW_KINDS, "spaces"))
     for kind in LABELS for form in OTHERS],
)  # fmt: skip
def test_a_release_in_a_format_of_others_fits(kind, form, tmp_path):
    source = source_of(LABELS[kind], "parquet", tmp_path)
    if (kind, form) in (("spaces", "sav"), ("spaces", "xpt")):
        with pytest.raises(
            OutputError, match=r"Column 1 of 's\..* holds texts that end in a space"
        ):
            fits(LABELS[kind], source, form)
        assert [*tmp_path.iterdir()] == [source]
        return
    fits(LABELS[kind], source, form, [form])
    # The secret is a table in that format with the true labels: a source itself.
    true = (tmp_path / f"true.{form}").resolve()
    (tmp_path / f"s.{form}").rename(true)
    fits(LABELS[kind], true, form, [form])


def fits(labels, source, end, outs=None):
    """Check that a release and a secret agree with their source, in one format and in Parquet."""
    tmp_path = source.parent
    for out in outs or dict.fromkeys([end, "parquet"]):
        release, secret = tmp_path / f"r.{out}", tmp_path / f"s.{out}"
        privatize(
            PrivatizeRequest(
                source,
                release,
                label=["label"],
                mechanism="rr",
                epsilon=3.0,
                secret=secret,
                overwrite=True,
                experimental=True,
                seed=1,
            )
        )
        by_source = read_release(release, truth=source).release
        by_secret = read_release(release, truth=secret).release
        assert len(by_source.classes) == len(labels)
        for read in (by_source, by_secret):
            assert read.classes == by_source.classes
            np.testing.assert_array_equal(read.truth, by_source.truth)
            # Which label is which: each row's true one is that of the same place in the list.
            pairs = set(zip(np.arange(ROWS) % len(labels), read.truth.tolist(), strict=True))
            assert len(pairs) == len(labels)
            assert (read.released == read.truth).mean() > 0.7


def test_codes_are_kept_apart_and_that_is_said(tmp_path):
    source = source_of(LABELS["zeros at the end"], "csv", tmp_path)
    made = privatize(
        PrivatizeRequest(source, tmp_path / "r.csv", label=["label"], mechanism="rr", epsilon=1.0)
    )
    assert any("1 of the 3 labels differs from another only in how a number" in w
               for w in made.warnings)  # fmt: skip
    declared = json.loads((tmp_path / "r.csv.ldpaudit.json").read_text())
    assert declared["mechanism"]["classes"] == ["250.0", "250.00", "401.9"]
    written = pd.read_csv(tmp_path / "r.csv", dtype=str)["label"]
    assert set(written) == {"250.0", "250.00", "401.9"}


def test_a_column_is_read_as_text_where_asked(tmp_path):
    path = tmp_path / "r.csv"
    pd.DataFrame({"x": range(ROWS), "label": ["1", "2"] * (ROWS // 2)}).to_csv(path, index=False)
    as_text = read_release(path, files=FileOptions(text=["x"])).release
    assert as_text.features.categorical.shape == (ROWS, 1)
    privatize(
        PrivatizeRequest(
            path, tmp_path / "t.parquet", label=["label"], mechanism="rr", epsilon=1.0,
            text=["x", "label"],
        )
    )  # fmt: skip
    kinds = read_release(tmp_path / "t.parquet").release
    assert kinds.classes in (("1", "2"), (1, 2))
    assert kinds.features.categorical.shape == (ROWS, 1)


@pytest.mark.parametrize(
    ("labels", "domain", "places"),
    [
        (["250.0", "250.00"], ["250.00", "250.0"], [1, 0]),
        (["250.0", "250.00"], [250], [-1, -1]),  # Never two labels for one.
        (["250.00"], [250, 401.9], [0]),
        (["250"], ["250.0", "250.00"], [-1]),
        ([1, 2], ["1.00", "2.00"], [0, 1]),
        (["01"], [1], [-1]),
        (["1e+05"], [100_000], [0]),
        (["2020-01-01 10:00:00.000000"], ["2020-01-01T10:00"], [0]),
        (["2020-01-01"], ["2020-01-01 00:00:00"], [0]),
        (["2020-01-01"], ["2020-01-01 01:00:00"], [-1]),
        ([True, False], [0, 1], [1, 0]),
        (["TRUE"], [True, False], [0]),
        (["a"], ["A"], [-1]),
    ],
)
def test_labels_match(labels, domain, places):
    assert positions(labels, domain).tolist() == places


def test_text_of_a_file_is_letters_but_for_whole_numbers_and_booleans():
    assert labels_of_text(["1", "2"]) == (1, 2)
    assert labels_of_text(["1", "1.0"]) == ("1", "1.0")
    assert labels_of_text(["0.5", "1.5"]) == ("0.5", "1.5")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_declared_times_are_compared_as_times(unit, tmp_path):
    times = pa.array([HOUR, HOUR.replace(hour=11)] * (ROWS // 2), pa.timestamp(unit))
    table = pa.table({"x": np.arange(ROWS) % 7, "label": times})
    for out in ("r.parquet", "r.csv", "r.jsonl"):
        privatize(
            PrivatizeRequest(
                table, tmp_path / out, label=["label"], mechanism="rr", epsilon=3.0,
                secret=tmp_path / f"s{out}",
            )
        )  # fmt: skip
        for truth in (table, tmp_path / f"s{out}"):
            read = read_release(tmp_path / out, truth=truth).release
            assert (read.released == read.truth).mean() > 0.7


@pytest.mark.parametrize("other", ["no ", " no", "NO", "cafe\u0301"])
def test_labels_that_differ_in_spelling_alone_are_said_to_be_labels_of_their_own(other):
    """They are kept apart: a claim may well be about four labels, A and a among them."""
    labels = ["no", "yes", "caf\u00e9", other]
    frame = pd.DataFrame({"age": range(200), "label": labels * 50})
    found = read_release(frame).warnings
    words = "1 of the 4 labels differs from another only in spaces, in upper and lower case or in"
    assert any(warning.startswith(words) for warning in found)
    assert not any(
        "only in spaces" in w for w in read_release(frame[frame.label != other]).warnings
    )
