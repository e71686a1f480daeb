"""Whether each released label is written in one way."""

import random

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.datasets import rows_in_memory
from ldpaudit.datasets.formats import csv_file
from ldpaudit.datasets.formats.quotes import QuotedCells
from ldpaudit.datasets.writings import whole_reports
from ldpaudit.doors import Declaration, read_release
from ldpaudit.mechanisms.view import DeclaredCoding

N = 600
GRID = {"low": 0.0, "high": 10.0, "step": 1.0, "epsilon": 1.0}
LAPLACE = Declaration("laplace", {"low": 0.0, "high": 10.0, "epsilon": 1.0}, "test")
DISCRETE = Declaration("discrete-laplace", GRID, "test")
CHECK = "labels-written"


def numbers() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 11, N)
    return truth, truth + rng.integers(-30, 31, N).astype(float)


def counted(released: np.ndarray, claim: Declaration = DISCRETE) -> int:
    table = pd.DataFrame({"x": np.arange(N) % 7, "label": released})
    read = read_release(table, declaration=claim, coding=DeclaredCoding)
    return read.release.otherwise_written


@pytest.mark.parametrize("claim", [DISCRETE, LAPLACE])
def test_numbers_of_one_output_have_the_same_digits(claim):
    truth, released = numbers()
    assert counted(released, claim) == 0
    assert counted(released.astype(np.float32).astype(float), claim) == 0
    # y + (output - y) is the output but for rounding, which depends on y.
    assert counted(truth * 1.1 + (released - truth * 1.1), claim) > 5
    assert counted(np.where(truth > 5, released + 0.0, -0.0 + released), claim) == 0


def test_digits_within_the_precision_that_is_read():
    truth, released = numbers()
    assert counted(released + 1e-9 * truth) > N / 2
    rare = released.copy()
    rare[4] += 1e-9
    assert counted(rare) == 1
    signs = np.where(released == 0, np.where(truth > 3, 0.0, -0.0), released)
    assert 0 < counted(signs) < (released == 0).sum()


def test_continuous_noise_is_written_as_it_comes():
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 11, N)
    assert counted(truth + rng.laplace(0, 10, N), LAPLACE) == 0


@pytest.mark.parametrize("way", ["quotes", "none"])
def test_labels_of_a_text_file(way, tmp_path):
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, N)
    released = np.where(rng.random(N) < 0.73, truth, 1 - truth)
    kept = released == truth
    mark = '"' if way == "quotes" else ""
    cells = [f"{mark}{z}{mark}" if k else str(z) for z, k in zip(released, kept, strict=True)]
    lines = [f"{x},{cell}\n" for x, cell in zip(rng.integers(0, 9, N), cells, strict=True)]
    release = tmp_path / "r.csv"
    release.write_text("x,label\n" + "".join(lines))
    true = pd.DataFrame({"label": truth})
    result = ldpaudit.audit(release, true, mechanism="rr", epsilon=1.0, only="mechanism")
    checks = {check.id: check for check in result.checks}
    assert (CHECK in checks) == (way == "quotes")
    if way == "quotes":
        assert checks[CHECK].verdict == "inconclusive"
        assert result.decision == "not yet"
        assert "Write every label in one way" in result.next_steps[0]
        assert f"{round(checks[CHECK].observed):,} rows write their label" in result.sentence


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("mark", ['"{}"', "{}.0"])
def test_all_rows_of_a_text_file_are_looked_at(mark, sampled, tmp_path, monkeypatch):
    """Rows far down the file, in a later block, and those of a sample."""
    rng = np.random.default_rng(5)
    cells = [str(label) for label in rng.integers(0, 2, N)]
    marked = [N - 9, N - 5, N - 1]
    for place in marked:
        cells[place] = mark.format(cells[place])
    lines = [f"{x},{cell}\n" for x, cell in zip(rng.integers(0, 9, N), cells, strict=True)]
    (tmp_path / "r.csv").write_text("x,label\n" + "".join(lines))
    monkeypatch.setattr(csv_file, "_QUOTES_LOOKED_AT", 500)
    if sampled:
        odd = np.arange(1, N, 2)
        monkeypatch.setattr(rows_in_memory, "_LARGE", 1)
        monkeypatch.setattr(rows_in_memory, "rows_looked_at", lambda *_: odd)
        monkeypatch.setattr(rows_in_memory, "allowed", lambda: 8 * 2 * 400)
    read = read_release(tmp_path / "r.csv", declaration=DISCRETE, coding=DeclaredCoding)
    assert len(read.release) == (N // 2 if sampled else N)
    assert read.release.otherwise_written == len(marked)
    assert any("How the cells of features" in remark for remark in read.remarks) == sampled


def test_which_cells_stand_in_quotes():
    """As they were written, in blocks of whole lines that may end within a cell."""
    draw = random.Random(7)
    for _ in range(300):
        width, line_end = draw.randint(1, 4), draw.choice(["\n", "\r\n"])
        place, in_quotes, lines = draw.randrange(width), [], []
        for _ in range(draw.randint(2, 8)):
            row = []
            for column in range(width):
                text = draw.choice(["a", "b,c", "x\ny", "", 'q""z', "\n", "12"])
                needed = any(sign in text for sign in ',\n"') or (not text and width == 1)
                quoted = needed or draw.random() < 0.3
                row.append(f'"{text}"' if quoted else text)
                if column == place:
                    in_quotes.append(quoted)
            lines += [",".join(row), *[""] * (draw.random() < 0.1)]
        text = line_end.join([*lines, ""] if draw.random() < 0.5 or not lines[-1] else lines)
        scan = QuotedCells(",", width, place)
        parts = text.encode().replace(b"\n", b"\n\0").rstrip(b"\0").split(b"\0")
        while parts:
            count = draw.randint(1, 4)
            assert scan.take(b"".join(parts[:count]))
            parts = parts[count:]
        found = scan.found()
        expected = np.array(in_quotes[1:])
        assert (found is None) == (not expected.any())
        assert found is None or found.tolist() == expected.tolist()


def test_lines_that_are_no_rows_are_not_looked_at():
    assert not QuotedCells(",", 2, 1).take(b'a,b\n"c"\n')


def test_reports_that_no_noise_was_added_to_are_said_to_be_so():
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 3, 400)
    noisy = np.eye(3)[truth] + np.round(rng.laplace(0, 2, (400, 3)), 3)
    noisy[:20] = np.eye(3)[truth[:20]]
    claim = {"name": "frequency-oracle", "protocol": "SHE", "classes": [0, 1, 2], "epsilon": 1.0}
    table = pd.DataFrame({"x": rng.integers(0, 9, 400), "label": noisy.tolist()})
    result = ldpaudit.audit(table, pd.Series(truth), claim, only="mechanism")
    (check,) = (one for one in result.checks if one.id == CHECK)
    assert check.reason.startswith("20 reports are of whole numbers alone")
    assert result["columns.whole_reports"].value == 20


def test_reports_that_no_noise_was_added_to():
    rng = np.random.default_rng(6)
    noisy = np.eye(5)[rng.integers(0, 5, N)] + np.round(rng.laplace(0, 1, (N, 5)), 3)
    assert whole_reports(noisy) == 0
    noisy[:12] = np.eye(5)[rng.integers(0, 5, 12)]
    assert whole_reports(noisy) == 12
    assert whole_reports(np.round(noisy)) == 0  # All are rounded: that reveals nothing.
    assert whole_reports(np.eye(5, dtype=bool)) == 0
