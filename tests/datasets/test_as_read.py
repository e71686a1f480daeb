"""Numbers and dates with other cells among them: what each becomes, in every format."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest

import ldpaudit
from ldpaudit.datasets.reading import read_release
from ldpaudit.errors import InputError
from ldpaudit.options import FileOptions
from ldpaudit.release.features import Reading

ROWS, FEW = 400, 8
MARKS = ["*", ".", "..", "?", "-", " ", "k.A.", "#DIV/0!", ":", "NULL", "None"]
RNG = np.random.default_rng(0)
NUMBERS = np.round(RNG.normal(50, 20, ROWS), 3)
PLACES = np.arange(0, FEW * 30, 30)
LABEL = ["no", "yes"] * (ROWS // 2)


def written(mark, numbers=NUMBERS):
    cells = [repr(float(number)) for number in numbers]
    for place in PLACES:
        cells[place] = mark
    return cells


def stored(cells, name, folder):
    """Return a file of a column of texts; a separator ; comes with decimal commas."""
    path = folder / name
    frame = pd.DataFrame({"x": cells, "label": LABEL})
    if name.endswith(".csv"):
        frame.to_csv(path, index=False)
    elif name.endswith(".de.tsv"):
        frame.assign(x=frame["x"].str.replace(".", ",")).to_csv(path, index=False, sep="\t")
    elif name.endswith(".parquet"):
        frame.to_parquet(path)
    elif name.endswith(".feather"):
        pyarrow.feather.write_feather(pa.Table.from_pandas(frame.astype("category")), str(path))
    else:
        frame.to_json(path, orient="records", lines=True)
    return path


def read(source, **options):
    return read_release(source, label="label", files=FileOptions(**options))


@pytest.mark.parametrize("name", ["r.csv", "r.de.tsv", "r.parquet", "r.feather", "r.jsonl"])
@pytest.mark.parametrize("mark", MARKS)
def test_a_known_mark_among_numbers_is_missing(mark, name, tmp_path):
    if name == "r.de.tsv" and "." in mark:
        mark = "*"
    report = read(stored(written(mark), name, tmp_path))
    numbers = report.release.features.numeric[:, 0]
    expected = NUMBERS.astype(np.float32)
    expected[PLACES] = np.nan
    np.testing.assert_allclose(numbers, expected, rtol=1e-6)
    (column,) = report.release.columns
    assert (column.kind, column.reading.others) == ("number", 0)
    said = any("Column 1 holds numbers; 8 cells" in remark for remark in report.remarks)
    assert said == (column.reading.marks > 0)


@pytest.mark.parametrize("name", ["r.csv", "r.parquet", "r.jsonl"])
def test_other_cells_are_counted_and_said(name, tmp_path):
    report = read(stored(written("<0.5"), name, tmp_path))
    assert report.release.columns[0].reading == Reading("number", 0, FEW)
    assert any("Column 1 holds numbers but for 8 cells" in one for one in report.remarks)
    assert "<0.5" not in "".join(report.remarks)
    named = read(tmp_path / name, missing_values=["<0.5"])
    assert named.release.columns[0].reading.others == 0
    as_text = read(tmp_path / name, text=["x"])
    assert as_text.release.columns[0].kind == "category"
    assert as_text.release.columns[0].reading == Reading()


def test_numbers_among_texts_are_said_and_stay_text():
    cells = [repr(float(n)) if i % 3 else f"about {i % 9}" for i, n in enumerate(NUMBERS)]
    report = read(pa.table({"x": cells, "label": LABEL}))
    assert report.release.columns[0].reading == Reading("text", 0, 134)
    assert "is read as text" in report.remarks[0]


@pytest.mark.parametrize(
    "cells",
    [
        [f"{i % 90:03d}" for i in range(ROWS)],  # Codes.
        [str(10_000 + i) for i in range(ROWS)],  # Whole numbers that are text by their type.
        [f"street {i}" for i in range(ROWS)],
        [f"{i % 7}.5" for i in range(ROWS)],  # Few enough for categories.
    ],
)
def test_text_stays_text(cells):
    report = read(pa.table({"x": cells, "label": LABEL}))
    assert report.release.features.categorical.shape == (ROWS, 1)
    assert (report.release.columns[0].reading, report.remarks) == (Reading(), ())


@pytest.mark.parametrize("name", ["r.csv", "r.parquet"])
def test_dates_with_a_bad_cell(name, tmp_path):
    days = pd.date_range("1990-01-01", periods=ROWS).strftime("%Y-%m-%d").tolist()
    days[3], days[7] = "2020-02-31", "soon"
    report = read(stored(days, name, tmp_path))
    assert report.release.columns[0].reading == Reading("date", 0, 2)
    assert np.isnan(report.release.features.numeric[[3, 7], 0]).all()
    assert "dates but for 2 cells" in report.remarks[0]


@pytest.mark.parametrize("name", ["r.csv", "r.de.tsv", "r.parquet"])
def test_infinite_numbers_are_refused_whatever_the_decimal_mark(name, tmp_path):
    path = stored(written("Inf"), name, tmp_path)
    with pytest.raises(InputError, match=r"must be finite.*--missing-values Inf"):
        read(path)
    assert read(path, missing_values=["Inf"]).release.columns[0].kind == "number"


def test_a_number_can_stand_for_a_missing_value(tmp_path):
    for name in ("r.csv", "r.parquet"):
        path = stored(written("-99.0"), name, tmp_path)
        assert np.isnan(read(path, missing_values=["-99.0"]).release.features.numeric).sum() == FEW
    typed = pa.table({"x": [-99, *range(ROWS - 1)], "label": LABEL})
    assert np.isnan(read(typed, missing_values=["-99"]).release.features.numeric).sum() == 1


def test_thousands_in_some_cells_hold_up_the_decision(tmp_path):
    path = stored(written("1,234.5"), "r.parquet", tmp_path)
    report = read(path)
    assert report.release.columns[0].reading.others == FEW


def test_companions_are_read_as_the_release_is(tmp_path):
    release = stored(written("*"), "r.csv", tmp_path)
    whole = pa.table({"x": NUMBERS})
    original = read_release(release, label="label", original=whole).release.original
    assert original.numeric.shape == (ROWS, 1)
    turned = pa.table({"x": NUMBERS, "label": LABEL})
    marked = pa.table({"x": written("?")})
    both = read_release(turned, label="label", original=marked).release
    np.testing.assert_array_equal(
        np.delete(both.original.numeric[:, 0], PLACES),
        np.delete(both.features.numeric[:, 0], PLACES),
    )


@pytest.mark.parametrize(("mark", "decision"), [("*", "publish"), ("<0.5", "not yet")])
def test_the_decision_waits_for_cells_that_were_not_read(mark, decision):
    n = 3000
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, n)
    noisy = np.where(rng.random(n) < 1 / (1 + np.e), 1 - truth, truth)
    cells = [repr(float(number)) for number in rng.normal(size=n)]
    cells[::100] = [mark] * 30
    table = pa.table({"x": cells, "label": noisy})
    only = ["mechanism", "power"]
    mechanism = {"name": "randomized-response", "classes": [0, 1], "epsilon": 1.0}
    result = ldpaudit.audit(table, truth, mechanism, only=only, rng=1)
    checks = {check.id: check.verdict for check in result.checks}
    assert checks.get("cells-read") == (None if decision == "publish" else "fail")
    assert (result.decision == "publish") == (decision == "publish")
    if decision == "not yet":
        named = ldpaudit.audit(table, truth, mechanism, only=only, rng=1, text=["x"])
        assert "cells-read" not in {check.id for check in named.checks}
