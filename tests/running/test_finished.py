"""Finished parts come back as they were, or not at all."""

import stat
from pathlib import Path

import numpy as np
import pytest

from ldpaudit.running.finished import Finished

VALUE = {
    "name": "bayes",
    "counts": np.arange(6, dtype=np.int64).reshape(2, 3),
    "folds": [{"auc": np.array([0.5, np.nan, np.inf]), "n": np.int64(3)}, {"auc": None, "n": 2}],
    "share": 0.1 + 0.2,
    "limit": float("inf"),
}


def test_a_part_comes_back_as_it_was(tmp_path: Path) -> None:
    finished = Finished(tmp_path / "parts" / "one")
    assert finished.get("a") is None
    assert "a" not in finished
    finished.put("a", VALUE)
    finished.put("b", (1, "x"))
    assert "a" in finished
    found = Finished(tmp_path / "parts" / "one").get("a")
    assert found["share"] == VALUE["share"]
    assert found["limit"] == float("inf")
    assert found["counts"].dtype == np.int64
    np.testing.assert_array_equal(found["counts"], VALUE["counts"])
    np.testing.assert_array_equal(found["folds"][0]["auc"], [0.5, np.nan, np.inf])
    assert found["folds"][1] == {"auc": None, "n": 2}
    assert finished.get("b") == [1, "x"]
    assert stat.S_IMODE((tmp_path / "parts" / "one").stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in finished.folder.iterdir()} == {0o600}  # type: ignore[union-attr]
    finished.remove()
    assert not (tmp_path / "parts").exists()


def test_without_a_folder_nothing_is_kept() -> None:
    finished = Finished()
    finished.put("a", 1)
    assert finished.get("a") is None
    finished.remove()


@pytest.mark.parametrize("harm", ["cut", "turned", "empty", "other"])
def test_a_damaged_part_is_ignored_with_one_line(tmp_path: Path, harm: str) -> None:
    told: list[str] = []
    finished = Finished(tmp_path / "parts", told.append)
    finished.put("a", VALUE)
    (path,) = finished.folder.iterdir()  # type: ignore[union-attr]
    content = path.read_bytes()
    place = content.index(np.arange(6).tobytes())
    turned = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
    if harm == "other":  # A part under another part's name.
        finished.put("b", VALUE)
        (other,) = set(finished.folder.iterdir()) - {path}  # type: ignore[union-attr]
        path.write_bytes(other.read_bytes())
    else:
        path.write_bytes({"cut": content[:-40], "turned": turned, "empty": b""}[harm])
    assert finished.get("a") is None
    assert len(told) == 1
    assert str(tmp_path) not in told[0]


def test_what_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    finished = Finished(tmp_path / "parts")
    for value in (np.array([object()]), {1: 2}, {"ndarray": 3}):
        with pytest.raises(TypeError):
            finished.put("a", value)


def test_a_folder_that_fills_up_costs_the_parts_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told: list[str] = []
    finished = Finished(tmp_path / "file" / "parts", told.append)
    finished.put("a", 1)
    assert finished.get("a") is None
    assert told == ["A part cannot be written to the folder of --resume, and is not kept."]
