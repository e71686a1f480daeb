"""What reading costs grows with a file's size, not with its rows times its columns."""

import json
import resource
import time

import numpy as np
import pytest

from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.json_lines import JsonLines
from ldpaudit.datasets.formats.locations import locate
from ldpaudit.datasets.reading import read_release
from ldpaudit.errors import InputError


def seconds(action):
    start = time.process_time()
    action()
    return time.process_time() - start


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_columns_cost_each_the_same(form, tmp_path):
    took = {}
    for columns in (500, 2_000):
        rows = np.random.default_rng(0).integers(0, 3, (20, columns))
        path = tmp_path / f"{columns}.{form}"
        names = [f"c{i}" for i in range(columns)]
        if form == "csv":
            text = ["label," + ",".join(names)]
            text += [f"{'ab'[i % 2]}," + ",".join(map(str, row)) for i, row in enumerate(rows)]
        else:
            text = [
                json.dumps({"label": "ab"[i % 2], **dict(zip(names, row.tolist(), strict=True))})
                for i, row in enumerate(rows)
            ]
        path.write_text("\n".join(text) + "\n")
        read_release(path)  # Imports and caches.
        took[columns] = seconds(lambda path=path: read_release(path))
    # Four times the columns: by a square it would be sixteen times.
    assert took[2_000] < 9 * took[500] + 0.5


def keys_of_their_own(path, lines):
    rows = ({"label": "ab"[i % 2], f"key{i}": 1} for i in range(lines))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_keys_that_differ_in_every_line_are_refused_before_they_cost(tmp_path):
    path = keys_of_their_own(tmp_path / "r.jsonl", 20_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    with pytest.raises(InputError, match="different keys or more"):
        open_table(path)
    assert time.process_time() - start < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # In KiB.


def test_few_lines_with_keys_of_their_own_are_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("ldpaudit.datasets.formats.json_lines._CELLS", 1_000)
    monkeypatch.setattr("ldpaudit.datasets.formats.json_lines._PIECE", 5_000)
    path = keys_of_their_own(tmp_path / "r.jsonl", 300)
    table = JsonLines(locate(path))
    batches = list(table.batches())
    assert len(batches) > 20
    assert sum(map(len, batches)) == table.row_count == 300
    whole = np.concatenate([batch.column("label").to_pylist() for batch in batches])
    assert whole.tolist() == ["a", "b"] * 150
    assert len(table.names) == 301


def test_a_mark_of_the_byte_order_before_json_lines(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b'{"label": "a", "x": 1}\n{"label": "b", "x": 2}\n' * 20)
    assert open_table(path).names == ("label", "x")
