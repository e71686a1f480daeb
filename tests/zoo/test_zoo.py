"""Each fault of the zoo is found once, and no honest release is accused."""

from pathlib import Path

import numpy as np
import pytest

from zoo.audited import SLOW, audit
from zoo.catalogue import FAULTS
from zoo.specimen import CLAIM, Fault, keep, noisy

ROWS = 5000
SEED = 1
TOO_SMALL = {"clear-1", "redrawn-in-range", "noise-truncated"}
"""Their excess is smaller than what so few rows can show, or there is none."""
MISSED = {
    *("period-1000", "period-20", "household-4", "household-20", "household-20-shuffled"),
    *("composition-3", "composition-visits", "two-releases"),
    *("sorted-by-truth", "sorted-within", "row-groups", "lag-column", "finer", "sum"),
    *("decides-98", "salted-rows"),
}
"""Faults that no part of the audit looks for yet."""
ACCUSED = {"derived-code", "derived-text", "derived-score", "derived-weight", "remembered"}
"""Honest releases that are still accused."""


WITH_SEEDS = {"honest", "households", "sorted-by-release", "numbers"}
"""Honest releases for which seeds are tried, too."""


def skipped(fault: Fault) -> tuple[str, ...]:
    """Return the audits to leave out; trying seeds takes a second, so only where it matters."""
    tried = fault.id.startswith("seed-") or fault.id in WITH_SEEDS
    return SLOW if tried else (*SLOW, "seeds")


def chosen(honest: bool, without: set[str]) -> list[Fault]:
    return [f for f in FAULTS.values() if f.honest == honest and f.id not in without]


@pytest.mark.parametrize("fault", chosen(False, MISSED | TOO_SMALL), ids=lambda fault: fault.id)
def test_a_fault_is_found(fault: Fault) -> None:
    outcome = audit(fault, ROWS, SEED, True, skip=skipped(fault))
    assert outcome.found != bool(fault.insider.why_not), outcome


@pytest.mark.parametrize("truth", [True, False], ids=["truth", "alone"])
@pytest.mark.parametrize("fault", chosen(True, ACCUSED), ids=lambda fault: fault.id)
def test_an_honest_release_is_not_accused(fault: Fault, truth: bool) -> None:
    # Of these audits one in fourteen would accuse somebody by chance at worst.
    skip = skipped(fault)
    assert not audit(fault, ROWS // 3, SEED, truth, skip=skip, confidence=0.999).accused


@pytest.mark.parametrize("name", ["age-80", "age-75", "noise-by-feature"])
def test_averages_of_a_compensated_leak_fit_the_claim(name: str) -> None:
    table = FAULTS[name].make(40_000, np.random.default_rng(0))
    released, truth = table.table["label"].to_numpy(), table.truth["label"].to_numpy()
    # Five standard deviations: one draw in two million lies outside.
    assert abs((released == truth).mean() - keep(CLAIM, 2)) < 5 * 0.5 / 200


def test_labels_are_kept_as_often_as_asked() -> None:
    from zoo.people import people

    rng = np.random.default_rng(0)
    persons = people(40_000, 5, rng)
    released = noisy(persons, 0.4, rng)
    assert abs((released == persons.codes).mean() - 0.4) < 5 * 0.5 / 200
    assert set(np.unique(released)) == set(range(5))


def test_every_fault_has_its_paragraph() -> None:
    page = (Path(__file__).parents[2] / "docs" / "zoo.md").read_text(encoding="utf-8")
    missing = [f"`{f.id}`" for f in FAULTS.values() if f"`{f.id}`" not in page]
    assert [name for name in missing if not name.startswith("`honest-")] == []
