"""How a cell is written is there for everybody to read, and no audit may lose it."""

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.datasets.reading import read_release

ROWS = 2_000
RNG = np.random.default_rng(3)
TRUTH = RNG.random(ROWS) < 0.4
NUMBERS = RNG.integers(60, 200, ROWS)
GAP = RNG.random(ROWS) < 0.25
WAYS = {
    "a point and a zero": ([f"{v}.0" for v in NUMBERS], NUMBERS),
    "an exponent": ([f"{v:.2e}" for v in NUMBERS], NUMBERS),
    "a zero at the end": ([f"{v / 10:.2f}" for v in NUMBERS], [f"{v / 10}" for v in NUMBERS]),
    "a sign": ([f"+{v}" for v in NUMBERS], NUMBERS),
    "a blank": ([f" {v}" for v in NUMBERS], NUMBERS),
    "a truth value": (
        np.where(NUMBERS % 2, "True", "False"),
        np.where(NUMBERS % 2, "TRUE", "FALSE"),
    ),
    "a time": (
        [f"2024-{v % 12 + 1:02}-05" for v in NUMBERS],
        [f"2024-{v % 12 + 1:02}-05T00:00:00" for v in NUMBERS],
    ),
    "a missing number": (np.where(GAP, "NA", NUMBERS), np.where(GAP, "", NUMBERS)),
    "a missing text": (np.where(GAP, "NULL", "x"), np.where(GAP, "NaN", "x")),
}


def told(features):
    """Return the largest share of rows whose label follows from a mark, beyond the commoner one."""
    marks = features.marks if features.marks is not None else np.zeros((ROWS, 0))
    best = max(TRUTH.mean(), 1 - TRUTH.mean())
    for mark in marks.T:
        by = pd.Series(TRUTH).groupby(mark, dropna=False)
        best = max(best, by.transform(lambda own: max(own.mean(), 1 - own.mean())).mean())
    return best


@pytest.mark.parametrize("way", WAYS)
def test_a_way_of_writing_that_tells_labels_is_kept(way, tmp_path):
    one, other = (np.asarray(values, dtype=object) for values in WAYS[way])
    released = np.where(RNG.random(ROWS) < 0.73, TRUTH, ~TRUTH).astype(int)
    for name, cells in (("told", np.where(TRUTH, one, other)), ("honest", other)):
        frame = pd.DataFrame({"x": cells, "label": released})
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    shares = {
        name: told(read_release(tmp_path / f"{name}.csv", label="label").release.features)
        for name in ("told", "honest")
    }
    assert shares["told"] > (0.68 if "missing" in way else 0.95)
    assert shares["honest"] < 0.65


def test_texts_of_a_frame_that_are_read_as_numbers_keep_how_they_are_written():
    texts = [f"{v}{'.' if yes else ''}" for v, yes in zip(NUMBERS, TRUTH, strict=True)]
    released = np.where(RNG.random(ROWS) < 0.73, TRUTH, ~TRUTH).astype(int)
    result = ldpaudit.audit(
        pd.DataFrame({"x": texts, "label": released}),
        truth=TRUTH.astype(int),
        label="label",
        mechanism={"name": "rr", "classes": [0, 1], "epsilon": 1.0},
        only=("mechanism",),
        rng=0,
        threads=1,
    )
    check = result.check("features-reveal-label")
    assert check.verdict == "fail"
    assert any("how it is written" in note.text for note in result.notes)


def test_whether_a_cell_stands_in_quotes(tmp_path):
    """Of one label alone, whatever else is in quotes, and with separators and lines inside."""
    cells = [f'"{v}"' if y else str(v) for v, y in zip(NUMBERS, TRUTH, strict=True)]
    rows = [f'"a, ""b""\n{i}",{cell},{i % 2}' for i, cell in enumerate(cells)]
    path = tmp_path / "r.csv"
    path.write_text("note,x,label\n" + "\n".join(rows) + "\n")
    release = read_release(path, label="label").release
    assert told(release.features) == 1.0
    assert "whether it stands in quotes" in [kind for _, kind in release.features.mark_sources]
    path.write_text(
        "note,x,label\n" + "\n".join(f'"{i}","{v}",{i % 2}' for i, v in enumerate(NUMBERS))
    )
    kinds = [kind for _, kind in read_release(path, label="label").release.features.mark_sources]
    assert "whether it stands in quotes" not in kinds
