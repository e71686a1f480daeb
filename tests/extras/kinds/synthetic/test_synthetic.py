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
from ldpaudit.datasets.declaration import remarks_on
from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.audits import SYNTHETIC as AUDIT
from ldpaudit.extras.kinds.mechanisms.with_features import DoubleRR
from ldpaudit.extras.kinds.synthetic import audit as synthetic_memorisation
from ldpaudit.extras.kinds.synthetic.counts import MemorisationCounts, PairWins
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
    table = x[rng.permutation(rows)[:800]] if made == "copies" else draw(table_y)
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
            **{f"{risk}@low": (-1, 0) for risk in RISKS},
        },
        "",
    ),
    "copies": (
        {"made": "copies"},
        {
            "synthetic.copies_share": 1,
            "synthetic.repeats_share": 0,
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
        {"synthetic.own_row_share": (0.6, 1)},
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


@pytest.mark.validate
def test_honest_releases_are_accused_no_more_often_than_the_level_says() -> None:
    findings = [audited(release(seed, rows=600), seed) for seed in range(100)]
    for share in ("own_row_share", "memorisation_share"):
        accused = sum(value(one, f"synthetic.{share}") > 0.5 for one in findings)
        assert accused <= binom.isf(1e-6, 100, 0.05)


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


@pytest.mark.parametrize(("trained_on", "remarks"), [("private", 1), ("public", 0)])
def test_a_generator_of_private_rows_is_a_remark(trained_on: str, remarks: int) -> None:
    remarks_made = remarks_on({"generator": {"name": "gan", "trained_on": trained_on}})
    assert sum("private rows" in text for text in remarks_made) == remarks


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
