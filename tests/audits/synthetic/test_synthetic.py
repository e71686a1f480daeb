import numpy as np
import pytest
from scipy.stats import binom
from worlds import feature_table

from ldpaudit.audits import synthetic as synthetic_memorisation
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.synthetic import AUDIT
from ldpaudit.datasets.declaration import remarks_on
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.synthetic import MemorisationCounts, PairWins
from ldpaudit.mechanisms import from_declaration
from ldpaudit.mechanisms.with_features import DoubleRR
from ldpaudit.release import Declaration, Release, ReleasedLabels, TrueLabels
from ldpaudit.result import Estimate, Finding

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


def value(finding: Finding, name: str) -> Estimate:
    return next(e for e in finding.estimates if e.id == f"synthetic.{name}")


def warned(finding: Finding) -> list[str]:
    return [note.text for note in finding.notes if note.level == "warning"]


def test_an_honest_release_is_realistic_and_not_accused() -> None:
    finding = audited(release())
    share = value(finding, "replaced_share")
    assert share.low is not None
    assert share.high is not None
    # Missed with 5 % over seeds; this seed is fixed.
    assert share.low < 0.4 < share.high
    assert value(finding, "discriminator_auc").value < 0.65
    assert value(finding, "copies_share").value == 0
    assert not warned(finding)


def test_a_generator_that_copies_the_audited_rows_is_found() -> None:
    finding = audited(release(made="copies"))
    assert value(finding, "copies_share").value == 1
    assert value(finding, "repeats_share").value == 0
    assert value(finding, "memorisation_share").value > 0.9
    assert value(finding, "training_epsilon_lower").value > 2
    assert value(finding, "nearer_share").value > 0.6
    assert any("has seen audited rows" in text for text in warned(finding))


@pytest.mark.parametrize("found", [PairWins(9, 9), PairWins(14, 13)])
def test_few_one_sided_pairs_say_what_they_show(
    found: PairWins, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = MemorisationCounts(90, 40, 20, 600, 300, 0, 0, (found,))
    monkeypatch.setattr(synthetic_memorisation, "count_memorisation", lambda *_: counts)
    finding = audited(release(rows=600))
    epsilon = value(finding, "training_epsilon_lower")
    assert 0 < epsilon.value <= counts.epsilon_lower(0.05)
    assert any("has seen audited rows" in text for text in warned(finding))


def test_synthetic_rows_of_the_true_label_are_found() -> None:
    finding = audited(release(made="true label"))
    assert value(finding, "own_row_share").value > 0.6
    assert any("not drawn independently" in text for text in warned(finding))


@pytest.mark.parametrize(("noise", "words"), [(0.3, "as kept"), (0.5, "rounded")])
def test_fewer_or_more_replaced_rows_than_declared_are_found(noise: float, words: str) -> None:
    finding = audited(release(noise=noise, claimed=0.8 - noise))
    assert any("declared λ" in text and words in text for text in warned(finding))


@pytest.mark.validate
def test_honest_releases_are_accused_no_more_often_than_the_level_says() -> None:
    runs, own, seen = 100, 0, 0
    for seed in range(runs):
        finding = audited(release(seed, rows=600), seed)
        own += value(finding, "own_row_share").value > 0.5
        seen += value(finding, "memorisation_share").value > 0.5
    limit = binom.isf(1e-6, runs, 0.05)
    assert own <= limit
    assert seen <= limit


def test_without_held_out_rows_memorisation_is_left_open() -> None:
    finding = audited(release(held_out=False))
    assert not any(e.id.startswith("synthetic.memorisation") for e in finding.estimates)
    assert any("not tested" in note.text for note in finding.notes)


def test_where_it_does_not_apply_it_says_why() -> None:
    released = release(rows=150, noise=0.05)
    claim = from_declaration(released.declaration, released.classes)
    with pytest.raises(InsufficientDataError, match="at least 100 rows"):
        AUDIT.run(AuditContext(released, claim, Plan(seed=1)))
    from dataclasses import replace

    alone = AuditContext(replace(released, original=None), claim, Plan(seed=1))
    assert "--original" in (AUDIT.unavailable(alone) or "")
    plain = from_declaration(
        Declaration("randomized-response", {"lambda": 0.1}, "api"), released.classes
    )
    kept = AuditContext(released, plain, Plan(seed=1))
    assert "replaces no features" in (AUDIT.unavailable(kept) or "")


@pytest.mark.parametrize(("trained_on", "remarks"), [("private", 1), ("public", 0)])
def test_a_generator_of_private_rows_is_a_remark(trained_on: str, remarks: int) -> None:
    remarks_made = remarks_on({"generator": {"name": "gan", "trained_on": trained_on}})
    assert sum("private rows" in text for text in remarks_made) == remarks


def test_singling_out_and_linking_show_copies_only() -> None:
    found = {made: audited(release(2, made=made)) for made in ("honest", "copies")}
    risks = {made: [value(f, f"{attack}.risk") for attack in ATTACKS] for made, f in found.items()}
    warned = {made: "single out or link" in str(f.notes) for made, f in found.items()}
    assert warned == {"honest": False, "copies": True}
    assert all(one.kind == "certified" and one.level == 0.95 for one in risks["copies"])
    assert all(one.low > 0.05 for one in risks["copies"])
    assert all(one.low <= 0 for one in risks["honest"])


def test_without_held_out_rows_no_risk_is_told() -> None:
    found = audited(release(held_out=False))
    ids = {one.id.removeprefix("synthetic.") for one in found.estimates}
    assert {f"{attack}.{rate}" for attack in ATTACKS for rate in ("attack", "naive")} <= ids
    assert not {f"{attack}.{rate}" for attack in ATTACKS for rate in ("control", "risk")} & ids
    assert any("singling out and linking them: that needs held-out" in n.text for n in found.notes)
