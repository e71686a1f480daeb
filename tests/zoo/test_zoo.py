"""Each fault of the zoo is found once, and no honest release is accused."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zoo.audited import audit
from zoo.catalogue import FAULTS
from zoo.specimen import CLAIM, Fault, keep

ROWS = 4000
SEED = 1
TOO_SMALL = {"clear-1", "clear-5", "redrawn-in-range", "noise-truncated"}
"""Their excess is smaller than what so few rows can show, or there is none."""

MECHANISMS = {name for name in FAULTS if name.startswith("honest-") and "classes" not in name}
QUICK = {
    *("made-3", "rare-class-clear", "age-75", "composition-visits", "seed-row-python"),
    *("sorted-by-truth", "lag-column", "salted-rows", "target-encoding"),
    *("zeros-kept", "parity-kept", "honest", "derived-score", "numbers"),
}
"""One of each kind, for every run of the tests; `make validate` has all, in full effort."""
WITH_SEEDS = {"honest", "sorted-by-release"}
"""Honest releases for which seeds are tried, too."""


def needed(fault: Fault) -> tuple[str, ...]:
    """Return the audits that look for it: all of them for all faults would take minutes."""
    seeds = ("seeds",) * (fault.id.startswith("seed-") or fault.id in WITH_SEEDS)
    return ("assumptions", "mechanism", "power", *seeds, *fault.needs)


def chosen(honest: bool, without: set[str]) -> list[Any]:
    faults = [f for f in FAULTS.values() if f.honest == honest and f.id not in without]
    quick = [pytest.param(f, id=f"{f.id}-small") for f in faults if f.id in QUICK]
    return quick + [pytest.param(f, id=f.id, marks=pytest.mark.validate) for f in faults]


@pytest.mark.parametrize("fault", chosen(False, TOO_SMALL))
def test_a_fault_is_found(fault: Fault) -> None:
    outcome = audit(fault, ROWS, SEED, True, only=needed(fault))
    assert outcome.found != bool(fault.insider.why_not), outcome


@pytest.mark.parametrize("truth", [True, False], ids=["truth", "alone"])
@pytest.mark.parametrize("fault", chosen(True, MECHANISMS))
def test_an_honest_release_is_not_accused(fault: Fault, truth: bool) -> None:
    # Of these audits one in fourteen would accuse somebody by chance at worst. Without true labels
    # a mean of released labels is taken for a natural feature where rows are few.
    rows = ROWS if fault.id == "derived-near-mean" else ROWS // 3
    assert not audit(fault, rows, SEED, truth, only=needed(fault), confidence=0.999).accused


@pytest.mark.validate
@pytest.mark.parametrize("truth", [True, False], ids=["truth", "alone"])
@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_no_mechanism_is_accused(name: str, truth: bool) -> None:
    assert not audit(FAULTS[name], ROWS, SEED, truth, confidence=0.999).accused


def test_averages_of_a_compensated_leak_fit_the_claim() -> None:
    table = FAULTS["age-75"].make(40_000, np.random.default_rng(0))
    released, truth = table.table["label"].to_numpy(), table.truth["label"].to_numpy()
    # Five standard deviations: one draw in two million lies outside.
    assert abs((released == truth).mean() - keep(CLAIM, 2)) < 5 * 0.5 / 200


def test_every_fault_has_its_paragraph() -> None:
    """By its name, or by one of its family: `seed-…` is all that begins so."""
    folder = Path(__file__).parents[2] / "docs" / "explanation"
    page = (folder / "zoo.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z0-9.…-]+)`", page)
    known = re.compile("|".join(re.escape(name).replace("…", ".*") for name in named))
    names = {name.removesuffix("-5-classes") for name in set(FAULTS) - MECHANISMS}
    assert {name for name in names if not known.fullmatch(name)} == set()
