"""Stray quotes in a CSV file: rows in one cell are refused, texts of several lines are not."""

import gzip

import pytest

from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.tables import read_whole
from ldpaudit.datasets.labels import forms
from ldpaudit.errors import InputError
from ldpaudit.work.limits import LABEL_CHARACTERS

LOOKS = "lines in it that look like rows"
OPEN = "quotes do not fit"
WORDS = [f"{['no', 'yes'][i % 2]}{['', 't'][i % 3 == 0]}" for i in range(300)]
# Numbers and text; text alone.
MIXED = [
    "age,town,pay,label",
    *(f"{20 + i % 50},Ulm,{i / 7:.3f},zz{w}" for i, w in enumerate(WORDS)),
]
TEXTS = ["sex,town,size,label", *(f"f,Ulm,{w},zz{w}" for w in WORDS)]


def with_quotes(lines, *places):
    """Return the lines as a text, with a quote before (or after) some cells: (line, cell, end)."""
    lines = list(lines)
    for line, cell, end in places:
        cells = lines[line].split(",")
        cells[cell] = f'{cells[cell]}"' if end else f'"{cells[cell]}'
        lines[line] = ",".join(cells)
    return "\n".join(lines) + "\n"


def refused(path, text):
    """Read a table that must be refused; return what is said."""
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    with pytest.raises(InputError) as caught:
        read_whole(open_table(path))
    message = str(caught.value)
    assert "zz" not in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("table", [MIXED, TEXTS], ids=["numbers", "texts"])
@pytest.mark.parametrize("cell", range(4))
@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 250])
def test_two_stray_quotes(table, cell, end, rows, tmp_path):
    """Which swallow one line break or many, and the second of which a cell may end with."""
    text = with_quotes(table, (20, cell, False), (20 + rows, cell, end))
    message = refused(tmp_path / "t.csv", text)
    assert LOOKS in message or OPEN in message


@pytest.mark.parametrize("table", [MIXED, TEXTS], ids=["numbers", "texts"])
@pytest.mark.parametrize("line", [1, 20, 299, 300])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv"])
def test_a_quote_that_is_never_closed(table, line, name, tmp_path):
    text = with_quotes(table, (line, 3, False))
    text = text.replace(",", "\t") if name == "t.tsv" else text
    message = refused(tmp_path / name, text)
    assert LOOKS in message or OPEN in message


def test_quotes_in_the_line_of_names(tmp_path):
    message = refused(tmp_path / "t.csv", with_quotes(MIXED, (0, 1, False), (4, 1, True)))
    assert "Column 2" in message
    assert LOOKS in message


def test_far_down_in_a_large_file(tmp_path):
    """Where another block of the file is read than the first."""
    lines = [MIXED[0], *(MIXED[1:] * 1000)]
    text = with_quotes(lines, (290_000, 1, False), (290_500, 1, True))
    assert len(text) > 4 << 20
    assert LOOKS in refused(tmp_path / "t.csv", text)


@pytest.mark.parametrize(
    "note",
    [
        "Dear Sir,\nthe patient felt well",
        "one\ntwo",
        "well, mostly,\nbut late, as always, and so, on, and on\nBest",
        "a list:\n- milk, 12, fresh\n- eggs\n",
        'he said ""no"",\nthen left\n\n',
        "late\r\nagain, at last, for once, she says",
    ],
)
@pytest.mark.parametrize("table", [MIXED, TEXTS], ids=["numbers", "texts"])
@pytest.mark.parametrize("place", [0, 1, 4])
def test_notes_of_several_lines_are_read(note, table, place, tmp_path):
    rows = [line.split(",") for line in table]
    for i, row in enumerate(rows):
        row.insert(place, "note" if i == 0 else f'"{note}"' if i % 3 else "none")
    path = tmp_path / "t.csv"
    path.write_bytes(("\n".join(map(",".join, rows)) + "\n").encode())
    read = read_whole(open_table(path))
    assert read.num_rows == len(table) - 1
    assert read.column("note")[0].as_py() == note.replace('""', '"')


@pytest.mark.parametrize("label", ["a\nb", "a\r", "x" * (LABEL_CHARACTERS + 1), "a\u2028b"])
def test_no_label_has_lines_or_is_a_long_text(label):
    with pytest.raises(InputError, match="1 of 3 is not") as caught:
        forms(["no", "yes", label], "true labels")
    assert label not in str(caught.value)
    assert len(forms(["no", "yes", "x" * LABEL_CHARACTERS, ""], "true labels")) == 4
