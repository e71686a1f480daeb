"""Outputs of a randomizer that are easily read as others, or are too large."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpaudit.commands.black_box.estimators.outputs import as_outputs, joined
from ldpaudit.commands.black_box.request import BlackBoxRequest
from ldpaudit.commands.black_box.work import audit_black_box
from ldpaudit.errors import InputError


@pytest.mark.parametrize(
    "outputs",
    [[2**63, 2**63 + 1, -1], [2**53, 2**53 + 1, 0.5], [(2**63, 1), (2**63 + 1, -1)]],
    ids=["beyond a word", "beside a fraction", "in tuples"],
)
def test_integers_that_differ_stay_different(outputs: list[Any]) -> None:
    """NumPy makes float64 of a list of such integers, and a client that leaks in them passed."""
    table = as_outputs(outputs, len(outputs))
    assert len({tuple(row) for row in table.tolist()}) == len(outputs)


def test_integers_of_two_calls_stay_different() -> None:
    kinds = (np.array([[2**63], [2**63 + 1]], np.uint64), np.array([[-1]]))
    assert len(set(joined(kinds)[:, 0].tolist())) == 3
    assert joined([np.array([[1]]), np.array([[0.5]])]).dtype == np.float64


def test_outputs_too_large_for_the_audit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call within its limit, those of many inputs took all memory."""
    code = "def wide(value, n, rng):\n    return rng.random((n, 50))\n"
    (tmp_path / "wide.py").write_text(code)
    monkeypatch.setattr("ldpaudit.commands.black_box.work._MOST_ENTRIES", 4_000)
    request = BlackBoxRequest("wide:wide", (0, 1), 400, path=(str(tmp_path),), processes=1)
    with pytest.raises(InputError, match="one takes 400 bytes, and 100 of each of 2 inputs"):
        audit_black_box(request)
