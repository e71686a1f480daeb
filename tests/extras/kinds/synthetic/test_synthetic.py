import datetime
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audits.found import check, value, words
from scipy.stats import binom
from worlds import feature_table

import ldpaudit
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.audits import SYNTHETIC as AUDIT
from ldpaudit.extras.kinds.mechanisms.with_features import DoubleRR
from ldpaudit.extras.kinds.synthetic import audit as synthetic_memorisation
from ldpaudit.extras.kinds.synthetic.counts import MemorisationCounts, PairWins
from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.policy import default_policy
from ldpaudit.judging.verdict import judge
from ldpaudit.mechanisms import from_declaration
from ldpaudit.release import Declaration, Release, ReleasedLabels, TrueLabels
from ldpaudit.result import Finding

CLASSES = ("no", "yes")
ATTACKS = ("singling_out", "linkability")


def release(
    seed: int = 0,
    rows: int = 1500,
    noise: float = 0.4,
    *,
    made: str = "honest",
    claimed: float | None = None,
    held_out: bool = True,
) -> Release:
    """Two Gaussian classes by double randomized response; ``made`` says where rows come from."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows).astype(np.int32)

    def draw(labels: np.ndarray) -> np.ndarray:
        return 2 * labels[:, None] + rng.standard_normal((len(labels), 3))

    x = draw(y)
    table_y = rng.integers(0, 2, 800).astype(np.int32)
    table = x[rng.permutation(rows)[:800]] if made in ("copies", "near") else draw(table_y)
    table += 1e-3 * rng.standard_normal(table.shape) if made == "near" else 0
    drawn = DoubleRR(CLASSES, noise).sample(y, table_y, rng)
    replaced = drawn.synthetic_rows >= 0
    fake = draw(y) if made == "true label" else table[drawn.synthetic_rows]
    parameters = {"lambda": noise if claimed is None else claimed}
    return Release(
        features=feature_table(np.where(replaced[:, None], fake, x)),
        released=ReleasedLabels(drawn.labels),
        outputs=CLASSES,
        classes=CLASSES,
        truth=TrueLabels(y),
        declaration=Declaration("double-rr", parameters, "api"),
        original=feature_table(x),
        held_out=feature_table(draw(rng.integers(0, 2, rows))) if held_out else None,
    )


def audited(released: Release, seed: int = 1) -> Finding:
    claim = from_declaration(released.declaration, released.classes)
    context = AuditContext(released, claim, Plan(seed=seed))
    assert AUDIT.unavailable(context) is None
    return AUDIT.run(context)


def warned(finding: Finding) -> str:
    return " ".join(note.text for note in finding.notes if note.level == "warning")


SEEN = "has seen audited rows"
RATES = {f"synthetic.{attack}.{rate}": (0, 1) for attack in ATTACKS for rate in ("attack", "naive")}
RISKS = [f"synthetic.{attack}.risk" for attack in ATTACKS]
CONTROLS = [f"synthetic.{attack}.control" for attack in ATTACKS]
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    # The share is missed with 5 % over seeds; this seed is fixed.
    "honest": (
        {},
        {
            "synthetic.replaced_share@low": (0, 0.4),
            "synthetic.replaced_share@high": (0.4, 1),
            "synthetic.discriminator_auc": (0, 0.65),
            "synthetic.copies_share": 0,
            "synthetic.copied_share": 0,
            "synthetic.own_rows": (0.001, 1),
            "synthetic.generator_blind": (0.001, 1),
            **{f"{risk}@low": (-1, 0) for risk in RISKS},
        },
        "",
    ),
    "copies": (
        {"made": "copies"},
        {
            "synthetic.copies_share": 1,
            "synthetic.repeats_share": 0,
            "synthetic.copied_share": 1,
            "synthetic.generator_blind": (0, 1e-9),
            "synthetic.memorisation_share": (0.9, 1),
            "synthetic.training_epsilon_lower": (2, 99),
            "synthetic.nearer_share": (0.6, 1),
            **dict.fromkeys(RISKS, "certified"),
            **{f"{risk}@low": (0.05, 1) for risk in RISKS},
        },
        SEEN,
    ),
    "true label": (
        {"made": "true label"},
        {"synthetic.own_row_share": (0.6, 1), "synthetic.own_rows": (0, 1e-3)},
        "not drawn independently",
    ),
    "fewer replaced": ({"noise": 0.3, "claimed": 0.5}, {}, "as kept"),
    "more replaced": ({"noise": 0.5, "claimed": 0.3}, {}, "rounded"),
    "no held-out rows": (
        {"held_out": False},
        RATES | dict.fromkeys([*RISKS, *CONTROLS, "synthetic.memorisation_share"]),
        "",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_found(case: str) -> None:
    made, numbers, said = CASES[case]
    finding = audited(release(**made))
    check(finding, numbers)
    assert said in warned(finding)
    assert case != "honest" or not warned(finding)
    assert ("single out or link" in words(finding)) == (case == "copies")
    left_open = ("not tested", "singling out and linking them: that needs held-out")
    assert all((text in words(finding)) == (case == "no held-out rows") for text in left_open)


@pytest.mark.parametrize("found", [PairWins(9, 9), PairWins(14, 13)])
def test_few_one_sided_pairs_say_what_they_show(
    found: PairWins, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = MemorisationCounts(90, 40, 20, 600, 300, 0, 0, (found,))
    monkeypatch.setattr(synthetic_memorisation, "count_memorisation", lambda *_: counts)
    finding = audited(release(rows=600))
    assert 0 < value(finding, "synthetic.training_epsilon_lower") <= counts.epsilon_lower(0.05)
    assert SEEN in warned(finding)


@pytest.mark.parametrize(
    ("made", "held_out", "name", "words"),
    [
        ("honest", True, "", ""),
        ("honest", False, "", ""),
        ("copies", False, "made-as-assumed", "equal the row of one audited person"),
        ("near", True, "made-as-assumed", "has seen audited rows"),
        ("true label", False, "feature-noise", "not drawn blindly"),
    ],
)
def test_what_is_found_is_decided(made: str, held_out: bool, name: str, words: str) -> None:
    finding = audited(release(made=made, held_out=held_out))
    evidence, today = Evidence.collect([finding]), datetime.date(2026, 1, 1)
    claim = from_declaration(Declaration("double-rr", {"lambda": 0.4}, "api"), CLASSES)
    judged = judge(default_policy(), claim, evidence, rows=1500, sha256=None, today=today)
    checks = {check.id: check for check in judged.checks if check.verdict != "pass"}
    assert set(checks) & {"made-as-assumed", "feature-noise"} == ({name} if name else set())
    assert not name or words in checks[name].reason


def test_copies_are_told_from_rows_that_are_equal_by_chance() -> None:
    """In columns of few values; a part of the rows copied."""
    rng = np.random.default_rng(3)
    for values in (4, 12, 60):
        originals, others = rng.integers(0, values, (2, 3000, 3)).astype(np.float32)
        copies = originals[rng.integers(0, 3000, 3000)]
        for share in (0.0, 0.5):
            mixed = np.where(rng.random((3000, 1)) < share, copies, others)
            found = [one.value for one in synthetic_memorisation._copied(mixed, originals)]
            assert not found or abs(found[0] - share) < 0.15
            assert found or values < 60  # Hardly anybody has a row of their own.


@pytest.mark.validate
def test_honest_releases_are_accused_no_more_often_than_the_level_says() -> None:
    findings = [audited(release(seed, rows=600), seed) for seed in range(100)]
    for share in ("own_row_share", "memorisation_share"):
        accused = sum(value(one, f"synthetic.{share}") > 0.5 for one in findings)
        assert accused <= binom.isf(1e-6, 100, 0.05)
    for name in ("own_rows", "generator_blind"):
        p_values = np.array([value(one, f"synthetic.{name}") for one in findings])
        for level in (0.02, 0.1, 0.5):
            assert (p_values <= level).sum() <= binom.isf(1e-6, 100, level)


def test_where_it_does_not_apply_it_says_why() -> None:
    released = release(rows=150, noise=0.05)
    claim = from_declaration(released.declaration, released.classes)
    few = AUDIT.run(AuditContext(released, claim, Plan(seed=1)))
    assert "at least 100 rows" in few.notes[0].text
    assert [one.id for one in few.estimates] == ["synthetic.kept_features"]
    plain = from_declaration(
        Declaration("randomized-response", {"lambda": 0.1}, "api"), released.classes
    )
    for one, mechanism, why in (
        (replace(released, original=None), claim, "--original"),
        (released, plain, "replaces no features"),
    ):
        assert why in (AUDIT.unavailable(AuditContext(one, mechanism, Plan(seed=1))) or "")


def test_held_out_rows_need_the_features() -> None:
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(99, 2)), columns=["a", "b"])
    labels = np.arange(99) % 2
    for rows, why in ((table[["a"]], "held-out"), (table.head(0), "no rows")):
        with pytest.raises(InputError, match=why):
            ldpaudit.audit(
                table.assign(label=labels),
                labels,
                DoubleRR((0, 1), 0.4),
                original=table,
                held_out=rows,
            )


def test_of_rows_that_belong_together_the_training_is_no_bound() -> None:
    """Of ten equal rows of each person an honest generator was certified to have seen a fifth."""
    made = release(made="copies")
    alone, grouped = (
        audited(one) for one in (made, replace(made, groups=np.arange(1500, dtype=np.int64) // 2))
    )
    for finding, kind in ((alone, "certified"), (grouped, "estimated")):
        kinds = {e.id: e.kind for e in finding.estimates}
        trained = ("synthetic.memorisation_share", "synthetic.training_epsilon_lower", *RISKS)
        assert {kinds[name] for name in trained} == {kind}
        assert kinds["synthetic.replaced_share"] == "certified"
        assert (SEEN in warned(finding)) == (kind == "certified")


def whole(released: Release) -> ldpaudit.AuditResult:
    """Audit a release as a table, with the true labels and features."""
    classes = np.array(CLASSES)

    def table(features: Any, labels: Any) -> pd.DataFrame:
        frame = pd.DataFrame(features.numeric, columns=["a", "b", "c"])
        return frame if labels is None else frame.assign(label=classes[labels])

    assert released.declaration is not None
    assert released.original is not None
    claim = {"name": "double-rr", "classes": list(CLASSES), **released.declaration.parameters}
    return ldpaudit.audit(
        table(released.features, released.released),
        pd.Series(classes[released.truth]),
        claim,
        original=table(released.original, None),
        only=("assumptions", "mechanism", "power", "synthetic"),
        rng=2,
    )


def judged(result: ldpaudit.AuditResult, name: str) -> Any:
    return next(one for one in result.checks if one.id == name)


def with_one_coin(made: Release, seed: int) -> Release:
    """Release the true label where the features were kept, and a random one where not."""
    rng = np.random.default_rng([seed, 9])
    assert made.original is not None
    assert made.truth is not None
    kept = (made.features.numeric == made.original.numeric).all(axis=1)
    others = rng.integers(0, 2, len(made))
    return replace(made, released=ReleasedLabels(np.where(kept, made.truth, others)))


@pytest.mark.parametrize("seed", range(2))
def test_one_coin_for_label_and_features_is_a_violation(seed: int) -> None:
    """Whoever knows a person's features sees that they were kept, and reads the label."""
    made = release(seed, rows=4000, noise=0.5)
    assert whole(made).verdict != "fail"
    found = whole(with_one_coin(made, seed))
    assert (found.decision, judged(found, "claimed-epsilon").verdict) == ("do not publish", "fail")
    assert "rows whose features were" in " ".join(note.text for note in found.notes)
    assert "Draw the two independently" in found.next_steps[0]


def test_features_that_were_kept_more_often_than_claimed_are_a_violation() -> None:
    made = release(3, rows=3000, noise=0.1, claimed=0.5)
    labels = DoubleRR(CLASSES, 0.5).sample(made.truth, made.truth, np.random.default_rng(1)).labels
    found = whole(replace(made, released=ReleasedLabels(labels)))
    kept = judged(found, "feature-noise")
    assert (kept.verdict, found.decision) == ("fail", "do not publish")
    assert "keep their true features" in found.next_steps[0]
    assert judged(whole(release(3, rows=1500, noise=0.5)), "feature-noise").verdict == "pass"


@pytest.mark.parametrize("values", [2, 50])
def test_the_share_of_kept_features_is_tested_at_its_level(values: int) -> None:
    """Where features have few values, synthetic ones equal the true ones by chance."""
    draws, level, wrong = 200, 0.2, 0
    for seed in range(draws):
        rng = np.random.default_rng([seed, values])
        original, made = rng.integers(0, values, (2, 400, 2)).astype(np.float32)
        released = np.where(rng.random(400)[:, None] < 0.5, made, original)
        found = synthetic_memorisation.kept_features(
            feature_table(original), feature_table(released), 0.5, 0.95
        )
        wrong += found.value <= level
    assert wrong <= binom.isf(1e-5, draws, level)
