"""Large releases: which rows audits look at, and what counts all of them."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from audits.found import check, words
from worlds import feature_table

from ldpaudit.audits.assumptions.standing import over_all_rows
from ldpaudit.audits.interface import AuditContext, Plan, in_part
from ldpaudit.audits.running import part_notes, run_audits
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.pipeline.audit import audit
from ldpaudit.pipeline.terms import Terms
from ldpaudit.release import Declaration, IndexArray, Release, ReleasedLabels, Slices, TrueLabels
from ldpaudit.result import Finding
from ldpaudit.work.memory import rows_looked_at

N = 9_000
CLAIM = RandomizedResponse.from_epsilon(("a", "b"), 1.0)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldpaudit.work.memory.MOST_ROWS_LOOKED_AT", 4096)
    monkeypatch.setattr("ldpaudit.work.memory.FIRST_ROWS", 512)


def release(*, copies: int = 1, epsilon: float = 1.0) -> Release:
    """Return a release; with copies each row, with its noise, is there several times."""
    rng = np.random.default_rng(7)
    rows = np.repeat(np.arange(N // copies), copies)
    truth = (rng.random(N) < 0.4).astype(np.int32)
    numbers = (truth[:, None] + rng.standard_normal((N, 2))).astype(np.float32)
    made = RandomizedResponse.from_epsilon(("a", "b"), epsilon)
    released = made.sample(truth, np.random.default_rng(11))
    return Release(
        feature_table(numbers[rows]),
        ReleasedLabels(released[rows]),
        ("a", "b"),
        ("a", "b"),
        TrueLabels(truth[rows]),
        declaration=None,
    )


def test_rows_are_runs_and_the_first_ones() -> None:
    assert rows_looked_at(4096, 1, 4096) is None
    rows = rows_looked_at(N, 1, 4096)
    assert rows is not None
    assert len(rows) == len(np.unique(rows)) == 4096
    assert (np.diff(rows) > 0).all()
    assert rows[:512].tolist() == list(range(512))
    assert (rows.reshape(-1, 256) % 256 == np.arange(256)).all()
    other = rows_looked_at(N, 2, 4096)
    assert other is not None
    assert (rows == rows_looked_at(N, 1, 4096)).all()
    assert (rows != other).any()


def test_the_rows_depend_on_no_label() -> None:
    one = in_part(AuditContext(release(), CLAIM, Plan(seed=3)))
    flipped = replace(release(), released=ReleasedLabels(1 - release().released))
    other = in_part(AuditContext(flipped, CLAIM, Plan(seed=3)))
    np.testing.assert_array_equal(one.release.features.numeric, other.release.features.numeric)
    assert (one.release.released == 1 - other.release.released).all()


def test_what_goes_with_the_rows() -> None:
    codes = np.arange(N, dtype=np.int32) % 3
    plan = Plan(seed=3, slices=(Slices("s", ("x", "y", "z"), codes),))
    context = in_part(AuditContext(release(), CLAIM, plan))
    rows = rows_looked_at(N, 3, 4096)
    assert context.whole is not None
    assert len(context.whole.release) == N
    np.testing.assert_array_equal(context.plan.slices[0].codes, codes[rows])
    assert "4,096 of the 9,000 rows" in next(part_notes(context)).text
    small = AuditContext(release().take(np.arange(2000)), CLAIM, Plan(seed=3))
    assert in_part(small) is small
    assert [*part_notes(small)] == []
    assert over_all_rows(small) is small


@dataclass(frozen=True)
class Others:
    """Answers of the same people, by the rows that they belong to."""

    rows: tuple[int, ...]

    def take(self, rows: IndexArray) -> "Others":
        return Others(tuple(self.rows[row] for row in rows))


def test_narrowing_takes_along_what_belongs_to_the_rows_and_forgets_the_rest() -> None:
    codes = np.arange(N, dtype=np.int32) % 3
    plan = Plan(seed=3, slices=(Slices("s", ("x", "y", "z"), codes),))
    every = AuditContext(release(), CLAIM, plan, Others(tuple(range(N))), assumes=("an order",))
    every.once("of all", lambda: 1)
    some = every.on_rows(np.arange(5, 100), whole=every)
    fewer = some.on_rows(np.array([0, 2]))
    assert fewer.release.places is not None
    assert fewer.release.places.tolist() == [5, 7]
    assert fewer.related == Others((5, 7))
    assert fewer.plan.slices[0].codes.tolist() == [2, 1]
    assert fewer.assumes == ("an order",)
    assert fewer.whole is None
    assert not fewer.memo
    again = some.on_rows(None, memo={"given": 2})
    assert len(again.release) == len(again.plan.slices[0].codes) == N
    assert again.related == every.related
    assert dict(again.memo) == {"given": 2}
    assert again.whole is None
    other = some.of(release())
    assert (other.related, other.whole, other.assumes, dict(other.memo)) == (None, None, (), {})


def test_all_rows_are_counted_unless_rows_share_noise() -> None:
    context = in_part(AuditContext(release(), CLAIM, Plan(seed=3)))
    every = over_all_rows(context)
    assert len(every.release) == N
    assert abs(int(every.halves().sum()) - N // 2) <= 1
    shared = in_part(AuditContext(release(copies=3), CLAIM, Plan(seed=3)))
    assert over_all_rows(shared) is shared


def test_neighbours_are_looked_for_among_all_rows() -> None:
    said = words(audit(release(), Terms(Plan(seed=3), only=["instance-loss"])))
    assert "among 4500 other people" in said
    assert "4,096 of the 9,000 rows" in said


@pytest.mark.parametrize("told", [True, False])
def test_seeds_are_tried_on_the_first_rows(told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldpaudit.work.memory.FIRST_ROWS", 2048)
    truth = release().truth if told else None
    stated = Declaration(CLAIM.name, {"epsilon": 1.0}, "api")
    made = replace(release(), truth=truth, declaration=stated)
    result = audit(made, Terms(Plan(seed=3, seeds_tried=0), only=["mechanism", "seeds"]))
    assert {record.status for record in result.audits} == {"ran"}
    assert (result["seeds.p_value"].value < 1e-9) >= told


@dataclass(frozen=True)
class OfAllRows:
    id: str = "of-all-rows"
    needs: tuple[str, ...] = ("order",)
    counts: str = "rows"

    def unavailable(self, context: AuditContext) -> None: ...

    def run(self, context: AuditContext) -> Finding:
        assert len(context.halves()) == len(context.release) == N
        assert [len(column.codes) for column in context.plan.slices] == [N]
        return Finding()


ALL_ROWS = OfAllRows()


def test_an_audit_of_the_rows_in_order_sees_all_of_them() -> None:
    slices = (Slices("s", ("x", "y"), np.arange(N, dtype=np.int32) % 2),)
    context = in_part(AuditContext(release(), CLAIM, Plan(seed=3, slices=slices)))
    context.halves()
    records, *_ = run_audits({"of-all-rows": f"{__name__}:ALL_ROWS"}, context)
    assert [record.status for record in records] == ["ran"]


@pytest.mark.parametrize(("epsilon", "found"), [(1.0, False), (3.0, True)])
def test_validity_and_power_of_a_part(epsilon: float, found: bool) -> None:
    """A bound from the part holds (false alarm: 5 % for one fixed seed) and finds a violation."""
    made = replace(release(epsilon=epsilon), declaration=None)
    result = audit(made, Terms(Plan(seed=3), only=["mechanism"]))
    lower = (1.0 if found else 0.5, epsilon)
    # Labels are counted in all rows.
    check(result, {"mechanism.epsilon_lower@low": lower, "mechanism.epsilon_lower@n": (4097, N)})


@pytest.mark.parametrize("told", [True, False])
def test_losses_and_divergences_count_groups_not_rows(told: bool) -> None:
    copies, groups = 5, N // 5
    made = release(copies=copies)
    truth = np.repeat(made.truth[::copies], copies)
    noise = CLAIM.sample(truth.astype(np.int32), np.random.default_rng(3))
    codes = np.repeat(np.arange(groups), copies)
    made = replace(
        made,
        truth=TrueLabels(truth),
        released=ReleasedLabels(noise),
        groups=codes if told else None,
    )
    result = audit(made, Terms(Plan(seed=1, queries=50), only=["instance-loss", "renyi"]))
    counted = {e.id: e.n for e in result.estimates if e.kind == "certified" and e.n}
    curves = [c for c in result.curves if c.kind == "certified" and c.n]
    assert curves
    # At most one half bounds: of the groups where they are stated, of the rows where they are not.
    assert (counted["instance_loss.mean_lower"] <= groups // 2) == told
    assert any("one row of each group" in note.text for note in result.notes) == told
    if told:
        assert max(*counted.values(), *(c.n for c in curves if c.n)) <= groups
