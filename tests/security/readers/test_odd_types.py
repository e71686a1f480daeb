"""Types of columns that few programs write: read as plain ones, or refused in one line."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pytest
from security.readers.fronts import here

N = 60
WORDS = [f"w{i % 3}" for i in range(N)]
PLACES = pa.array([i % 3 for i in range(N)], pa.int32())
STRUCTURES = pa.array([{"f": word} for word in "abc"])
COLUMNS = {
    "views of texts": pa.array(WORDS, pa.string_view()),
    "views of bytes": pa.array([word.encode() for word in WORDS], pa.binary_view()),
    "a dictionary of views": pa.DictionaryArray.from_arrays(
        PLACES, pa.array(["a", "b", "c", "unused"], pa.string_view())
    ),
    "a dictionary of nothing": pa.DictionaryArray.from_arrays(
        pa.array([None] * N, pa.int32()), pa.array([], pa.null())
    ),
    "lists of a dictionary of structures": pa.ListArray.from_arrays(
        np.arange(N + 1, dtype=np.int32), pa.DictionaryArray.from_arrays(PLACES, STRUCTURES)
    ),
}
RELEASE = "privatize t.feather -o r.parquet --mechanism rr --epsilon 1 --secret s.parquet --id id"
COMMANDS = {
    "privatize": RELEASE,
    "run": "run t.feather --only mechanism --mechanism rr --epsilon 1",
    "sweep": "sweep t.feather --mechanism rr --epsilon 1 --repeats 1 --processes 1 --only power",
}


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        pytest.param(kind, command, marks=pytest.mark.validate if is_long else ())
        for command in COMMANDS
        for kind in COLUMNS
        for is_long in [command == "sweep" and kind != "views of texts"]
    ],
)
def test_an_odd_type_is_no_internal_fault(kind: str, command: str, tmp_path: Path) -> None:
    columns = {"odd": COLUMNS[kind], "id": np.arange(N), "label": np.arange(N) * 7 % 5 < 2}
    feather.write_feather(pa.table(columns), tmp_path / "t.feather")
    status, said = here(COMMANDS[command].split(), tmp_path)
    refused = kind.startswith(("views of b", "lists", "a dictionary of v"))
    assert status in ((0, 2, 3) if refused else (0, 3)), said
    assert "Internal" not in said
