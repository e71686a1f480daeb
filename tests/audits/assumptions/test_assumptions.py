"""No false alarm by construction, and what takes its place: a warning, fewer rows, other words."""

import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from zoo.audited import audit
from zoo.catalogue import FAULTS

import ldpaudit
from ldpaudit.audits.assumptions.rows import LabelNoise, centred_by_features
from ldpaudit.commands.selftest.planting import Setting, keep_chance, people, replaced
from ldpaudit.commands.selftest.work import planted
from ldpaudit.errors import InputError
from ldpaudit.judging.policy import Policy
from ldpaudit.release import FeatureTable
from ldpaudit.result import AuditResult, stated

ROOT = Path(__file__).resolve().parents[3]
CLAIM = {"name": "randomized-response", "epsilon": 1.0}
SORTED = "sorted by the released label"


def release(
    kind: str, seed: int, n: int = 3000, *, made: float = 1.0
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table with a released label, and its true labels."""
    rng = np.random.default_rng(seed)
    truth, lost = (rng.random(n) < 0.4).astype(int), 1 / (1 + np.exp(made))
    points, flips = truth[:, None] + rng.standard_normal((n, 4)), rng.random(n) < lost
    group = np.arange(n)
    if kind == "remembered":
        group = np.arange(n) // 5
        truth, points = truth[group * 5], points[group * 5]
        flips = (rng.random(n) < lost)[group]
    if kind.startswith("household"):
        group = np.arange(n) // int(kind.removeprefix("household-"))
        flips = (rng.random(n) < lost)[group]
    if kind.startswith("period"):
        flips = np.resize(flips[: int(kind.removeprefix("period-"))], n)
    if kind == "steered":
        flips &= points[:, 0] < 1.5
    if kind.startswith("answers"):
        group = np.arange(n) // 5
        truth, points = truth[group * 5], points[group * 5]
        points[:, 3] = rng.standard_normal(n)
        points[:, 2] = np.round(truth + rng.standard_normal(n), 1)
        points[:, :2] = points[:, :2].round(1)
        flips = (rng.random(n) < lost)[group]
    if kind == "model":
        points[:, 1:] -= truth[:, None]
    if kind == "compensated":
        old = rng.random(n) < 0.07
        truth[old & (rng.random(n) < 0.8)] = 0
        points = truth[:, None] + rng.standard_normal((n, 4))
        points[:, 3] = np.where(old, 3, 0) + rng.random(n)
        flips = ~old & (rng.random(n) < lost / 0.93)
    if kind == "visits":
        group = np.arange(n) // 3
        truth, points = truth[group * 3], points[group * 3] + rng.standard_normal((n, 4))
    frame = pd.DataFrame(points, columns=["a", "b", "c", "d"])
    released = np.where(flips, 1 - truth, truth)
    columns = {
        "code": released,
        "text": np.where(released == 1, "yes", "no"),
        "score": 2 * released + rng.standard_normal(n),
        "faint": released + 2 * rng.standard_normal(n),
        "weight": 1 / np.bincount(released)[released],
    }
    if kind == "model":
        model = HistGradientBoostingClassifier(early_stopping=False, random_state=seed)
        frame["column"] = model.fit(points, released).predict_proba(points)[:, 1]
    if kind in columns:
        frame["column"] = columns[kind]
    frame["home"], frame["label"] = group, released
    order = rng.permutation(n) if kind in ("remembered", "answers") else np.arange(n)
    return frame.iloc[order].reset_index(drop=True), truth[order]


@cache
def audited(
    kind: str,
    seed: int,
    *,
    truth: bool = True,
    group: bool = False,
    power: bool = False,
    **options: Any,
) -> AuditResult:
    frame, labels = release(kind, seed, **({"n": 2000} | options))
    return ldpaudit.audit(
        frame if group else frame.drop(columns="home"),
        truth=labels if truth else None,
        mechanism=CLAIM,
        rng=seed,
        group="home" if group else None,
        only=("assumptions", "mechanism", *(("power",) if power else ())),
        threads=1,
    )


def values(result: AuditResult) -> dict[str, float]:
    return {estimate.id: estimate.value for estimate in result.estimates}


def warnings(result: AuditResult) -> str:
    return " ".join(note.text for note in result.notes if note.level == "warning")


DERIVED = {"assumptions.derived_columns": (1, 1), "release_only.epsilon_lower": (0, 1)}
BLIND = DERIVED | {"assumptions.feature_blind": (0.05, 1)}
SHARED = "mechanism.shared_noise_epsilon_lower"
ONCE = {"assumptions.counted_rows": (360, 400), SHARED: (0, 1)}
FEWER = {"assumptions.counted_rows": (1, 400), SHARED: (0, 0)}
LEAK = {
    "assumptions.shared_noise": (0, 1e-6),
    SHARED: (1, 99),
    "mechanism.epsilon_lower": (0, 1.2),
}
COMPUTED = "computed from the released label"
OUTSIDE, PRECISE = {"truth": False}, {"truth": False, "made": 3.0}
ALONE = "if each released label comes from the true label alone"
FOUND = {"release_only.epsilon_lower": (1.2, 99)}
OTHERS = "assumptions.shared_with_others"
Numbers = dict[str, tuple[float, float]]
CASES: list[tuple[str, int, dict[str, Any], bool | None, Numbers, str]] = [
    ("code", 1, {}, False, BLIND, COMPUTED),
    ("score", 1, {}, False, BLIND, COMPUTED),
    ("score", 1, OUTSIDE, False, DERIVED, COMPUTED),
    ("model", 5, OUTSIDE, False, DERIVED, COMPUTED),
    *(("faint", seed, {}, False, {}, "") for seed in (0, 6)),
    *((kind, 2, PRECISE, True, FOUND, ALONE) for kind in ("code", "none")),
    ("steered", 3, {}, True, {"assumptions.feature_blind": (0, 1e-6)}, "depend"),
    ("remembered", 4, {}, False, ONCE, "noise"),
    ("remembered", 4, OUTSIDE, False, ONCE, "noise"),
    ("answers", 4, {}, False, FEWER, "noise"),
    ("household-4", 5, {"group": True}, True, LEAK, ""),
    ("period-100", 5, {}, True, LEAK, ""),
    *((kind, 1, {}, True, {OTHERS: (0, 1e-6)}, "") for kind in ("period-20", "household-20")),
    *((kind, 1, {}, None, {OTHERS: (0.01, 1)}, "") for kind in ("honest", "remembered", "visits")),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_what_is_refuted_and_what_takes_the_place_of_a_false_alarm(case: Any) -> None:
    kind, seed, options, fails, numbers, words = case
    result = audited(kind, seed, **options)
    assert fails is None or (result.verdict == "fail") == fails
    found = values(result)
    for name, (low, high) in numbers.items():
        assert low <= found.get(name, 0.0) <= high, name
    assert words in (result.sentence if fails else warnings(result))


def test_a_channel_that_uses_features_is_a_refuted_claim() -> None:
    result = audited("steered", 3)
    assert "certified" not in result.sentence
    assert "gives true labels away" not in result.sentence
    bounds = [e for e in result.estimates if e.id.startswith("mechanism.epsilon_lower")]
    assert {bound.kind for bound in bounds} == {"estimated"}
    assert any("refuted here" in text for text in bounds[0].assumptions)


def test_a_column_that_the_channel_uses_is_not_taken_for_a_derived_one() -> None:
    """7 % of the rows are in the clear, of people whose labels are nearly known anyway."""
    assert audited("compensated", 0, n=4000).verdict == "fail"


@pytest.mark.parametrize("name", ["remembered-visits", "remembered-coarse"])
def test_rows_of_one_person_that_are_alike_in_some_columns_alone(name: str) -> None:
    """They share noise, or might: then features must not be said to steer the channel."""
    found = audit(FAULTS[name], 2000, 0, True, only=("assumptions", "mechanism"))
    assert not found.accused
    text = " ".join(found.facts) + found.sentence
    assert "share noise" in text or "answer was remembered" in text


def test_a_file_sorted_by_its_released_labels_is_honest() -> None:
    """Its order is made from released labels: bets on rows may not follow it."""
    found = audit(FAULTS["sorted-by-release"], 3000, 0, True, only=("assumptions",))
    assert not found.accused
    assert not any("depend on the features" in fact for fact in found.facts)


@pytest.mark.parametrize("high", [2, 8])
def test_numbers_sorted_by_what_was_released_share_no_noise(high: int) -> None:
    rng = np.random.default_rng(high)
    truth = rng.integers(0, high + 1, 1500)
    released = truth + rng.laplace(0, high, 1500)
    frame = pd.DataFrame({"x": rng.standard_normal(1500), "label": released, "truth": truth})
    frame = frame.sort_values("label", ignore_index=True)
    claim = {"name": "laplace", "low": 0, "high": high, "epsilon": 1.0}
    result = ldpaudit.audit(
        frame[["x", "label"]], truth=frame["truth"], mechanism=claim, only=["assumptions"]
    )
    assert result[stated.SHARED_NOISE_TEST].value == 1.0


@pytest.mark.real_data
def test_rows_repeated_by_their_released_label_where_few_features_differ(
    shared_data: Path,
) -> None:
    """One row of each group of equal ones counts, so a label is frequent only in large groups."""
    rng, names = np.random.default_rng(3), ["education_num", "marital_status", "occupation"]
    table = pd.read_parquet(shared_data / "adult.parquet").sample(6000, random_state=3)
    truth = (table["income"] == ">50K").to_numpy()
    released = truth ^ (rng.random(6000) > np.e**2 / (1 + np.e**2))
    rows = rng.permutation(np.append(np.arange(6000), np.flatnonzero(released)))
    result = ldpaudit.audit(
        table[[*names, "sex"]].assign(label=released.astype(int)).iloc[rows],
        truth=truth[rows].astype(int),
        mechanism={"name": "rr", "classes": [0, 1], "epsilon": 2.0},
        only=("assumptions", "mechanism"),
        rng=3,
        threads=1,
    )
    assert result.verdict == "inconclusive"
    assert "left out or repeated because of their released label" in result.sentence


@pytest.mark.parametrize("truth", [True, False])
def test_a_short_file_of_repeated_rows_is_audited(truth: bool) -> None:
    """The public power, too, looks at the released labels alone: too few for a bound by columns."""
    result = audited("remembered", 0, n=90, truth=truth, power=True)
    assert result.verdict == "inconclusive"
    assert {audit.status for audit in result.audits} <= {"ran", "skipped"}


def test_the_check_of_shared_noise_only_warns() -> None:
    check = audited("remembered", 4).check("shared-noise")
    assert (check.verdict, check.level) == ("fail", "warn")
    assert audited("honest", 1).check("shared-noise").verdict == "pass"


def test_fresh_noise_for_one_person_adds_up() -> None:
    result = audited("visits", 7, group=True)
    assert values(result)["assumptions.composed_epsilon"] == pytest.approx(3)
    assert "fresh noise" in warnings(result)
    assert "assumptions.composed_epsilon" not in values(audited("visits", 1))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (None, "nowhere"),
        (np.zeros(300), "same in all rows"),
        (np.r_[np.zeros(200), np.arange(100)], "more than half"),
    ],
)
def test_bad_groups(column: np.ndarray | None, words: str) -> None:
    frame, _ = release("none", 8, 300)
    name = "nowhere" if column is None else "home"
    if column is not None:
        frame["home"] = column
    with pytest.raises(InputError, match=words) as raised:
        ldpaudit.audit(frame, mechanism=CLAIM, group=name)
    assert "\n" not in str(raised.value)
    with pytest.raises(InputError, match="another column"):
        ldpaudit.audit(frame, mechanism=CLAIM, group="label")


def test_a_repeated_id_is_a_group() -> None:
    frame, truth = release("visits", 9)
    result = ldpaudit.audit(
        frame.assign(truth=truth),
        truth_column="truth",
        id_column="home",
        mechanism=CLAIM,
        only=("assumptions",),
        threads=1,
    )
    assert values(result)["assumptions.composed_epsilon"] == pytest.approx(3)


def test_the_documents_state_the_assumptions_in_the_codes_words() -> None:
    page = ROOT / "docs/explanation/kinds-of-numbers.md"
    text = re.sub(r"\s+", " ", page.read_text())
    for words in (stated.INDEPENDENT, stated.FEATURE_BLIND, stated.NOT_DERIVED):
        assert words in text


KINDS = ("code", "score", "weight", "remembered", "household-4", "household-20", "period-1000")


@pytest.mark.validate
@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_where_rows_or_columns_are_not_independent(kind: str, truth: bool) -> None:
    """The bounds for all rows miss in 5 % of draws: of 500, more than 49 have a chance of 1e-6."""
    names = ("mechanism.epsilon_lower", "mechanism.subgroup_epsilon_lower")
    misses = 0
    for seed in range(500):
        found = values(audited(kind, seed, truth=truth, n=2000))
        bounds = [found.get(name, 0.0) for name in names]
        misses += max(bounds) > 1 if truth else found.get("release_only.epsilon_lower", 0.0) > 1
    assert misses <= (98 if truth else 49)


def test_where_rows_share_noise_no_interval_of_an_attack_is_certified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Attacks count all rows; the check may not fail by them. Honest rows keep their intervals."""
    monkeypatch.setenv("LDPAUDIT_EFFORT", "small")
    strict = {"schema": 1, "checks": {"label-inference-accuracy": {"level": "error", "max": 0.3}}}
    cases = (("remembered", "estimated", "inconclusive"), ("none", "certified", "fail"))
    for kind, expected, verdict in cases:
        frame, labels = release(kind, 4, 500)
        result = ldpaudit.audit(
            frame.drop(columns="home"),
            truth=labels,
            mechanism=CLAIM,
            rng=4,
            only=("assumptions", "label-inference"),
            policy=Policy.model_validate(strict),
            threads=1,
        )
        best = result.estimate("attack.best.accuracy")
        assert best is not None
        assert (best.kind, result.verdict) == (expected, verdict)
        assert (stated.NOT_INDEPENDENT in best.assumptions) == (kind == "remembered")


def test_equal_rows_with_equal_labels_look_like_one_persons() -> None:
    """Three rows of each, fresh noise; but four people with equal features are nobody's fault."""
    for name, fails in (("composition-3", True), ("duplicates", False)):
        facts = audit(FAULTS[name], 1500, 0, True, only=("assumptions",)).facts
        assert ("fail:composition" in facts) is fails


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_few_clusters_are_not_all_on_one_side(count: int, seed: int) -> None:
    """Of two, both halves of a coin's throws are empty half of the time."""
    rng = np.random.default_rng(seed)
    outcomes, rows = (rng.random(30) < 0.4).astype(np.float64), np.arange(30)
    features = FeatureTable(
        rng.random((30, 1), dtype=np.float32), np.empty((30, 0), np.int32), (), 1
    )
    noise = LabelNoise(outcomes, np.full(30, 0.4), np.full(30, 0.4))
    context: Any = SimpleNamespace(rng=lambda *_: np.random.default_rng(seed))
    chances = centred_by_features(context, features, noise, rows % count)
    assert np.isfinite(chances).all()
    assert (chances == 0.4).all() == (count == 1)


def test_the_first_rows_of_each_released_label_are_not_a_broken_claim() -> None:
    """Balanced in the file's order: its end has rare released labels alone."""
    rng = np.random.default_rng([7, 3])
    persons = people(4000, 6, rng)
    codes = replaced(persons.codes, 6, rng.random(4000) < keep_chance(1.0, 6), rng)
    kept = pd.Series(codes).groupby(codes).cumcount() < np.bincount(codes).min()
    names = np.array(persons.classes)
    result = ldpaudit.audit(
        persons.frame[kept].assign(label=names[codes[kept]]),
        truth=list(persons.labels[kept]),
        label="label",
        only=("assumptions", "mechanism"),
        rng=3,
        mechanism={"name": "rr", "classes": list(names), "epsilon": 1.0},
    )
    assert result.verdict == "inconclusive"


@pytest.mark.parametrize(
    ("seed", "setting"),
    [
        (4, (23, SORTED, "laplace", 5, 1557, 1.0)),
        (4, (29, SORTED, "debiased-rr", 9, 500, 0.5)),
    ],
)
def test_rows_sorted_by_the_released_number_share_no_noise(seed: int, setting: Any) -> None:
    """The first rows of each value of a column have low numbers then, the last ones high ones."""
    made = planted(Setting(*setting), seed)
    result = ldpaudit.audit(made.table, truth=made.truth, only=("assumptions", "mechanism"), rng=1)
    assert result.verdict != "fail"
    assert all(check.verdict == "pass" for check in result.checks if check.id == "shared-noise")
