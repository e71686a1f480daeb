"""Rows of rare true classes: how many they are tells nothing, and many of them are no pass."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.audits.small_classes import large_classes
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import RandomizedResponse


@pytest.mark.parametrize("sizes", [(9, 9), (1, 1), (5, 0), (9, 2)])
def test_how_many_are_left_out_depends_on_the_number_of_small_classes_alone(
    sizes: tuple[int, int],
) -> None:
    codes = np.repeat(np.arange(4), (200, 100, *sizes))
    kept = large_classes([(codes, 4)])
    assert kept is not None
    assert len(codes) - len(kept) == 20


def _table(rare: int, each: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Two honest classes, and rare ones of ``each`` people in the clear."""
    rng = np.random.default_rng(3)
    k = 2 + rare
    truth = np.concatenate([np.repeat([0, 1], 900), np.repeat(np.arange(2, k), each)])
    mechanism = RandomizedResponse.from_epsilon(tuple(range(k)), 1.0)
    noisy = mechanism.sample(truth.astype(np.int32), rng)
    noisy[truth > 1] = truth[truth > 1]
    order = rng.permutation(len(truth))
    frame = pd.DataFrame({"sex": rng.integers(0, 2, len(truth)), "label": noisy})
    return frame.iloc[order].reset_index(drop=True), truth[order]


def test_many_people_left_out_are_no_pass() -> None:
    frame, truth = _table(18, 8)
    only = ("mechanism", "power")
    result = ldpaudit.audit(frame, truth, "rr", epsilon=1.0, only=only, threads=1)
    assert result.verdict == "inconclusive"
    (check,) = (check for check in result.checks if check.id == "claimed-epsilon")
    assert "left out with true classes of few people" in check.reason
    frame, truth = _table(1, 8)
    few = ldpaudit.audit(frame, truth, "rr", epsilon=1.0, only=only, threads=1)
    assert few.verdict == "pass"


def test_slices_show_no_counts_beside_people_left_out() -> None:
    frame, truth = _table(1, 8)
    told = {"only": ("label-inference",), "slices": ("sex",), "budget": 0.2, "threads": 1}
    result = ldpaudit.audit(frame, truth, "rr", epsilon=1.0, **told)
    slices = [e for e in result.estimates if "slice-" in e.id]
    assert slices
    assert all(e.n is None and e.count is None for e in slices)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="a pipe or a device"):
        ldpaudit.audit(tmp_path / "pipe.csv", None, "rr", epsilon=1.0)
