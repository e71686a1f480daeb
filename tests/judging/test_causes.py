"""Each signature of a fault gives its sentence, and honest releases give none of them."""

import math
from typing import Any

import numpy as np
import pytest
from judging.cases import CLAIM, case, counted, evidence, judged, p_value, power

from ldpaudit.judging.causes import Signs, causes
from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.circumstances import Circumstances
from ldpaudit.judging.fits import fitted_epsilon, likely_slip, unlike_the_claim
from ldpaudit.judging.next_steps import next_steps
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.result import Check, Estimate


def rr(epsilon: float, k: int = 2) -> RandomizedResponse:
    return RandomizedResponse.from_epsilon(tuple(range(k)), epsilon)


def failed(name: str, level: str = "error") -> Check:
    answer = {"limit": 1.0, "observed": 2.0, "verdict": "fail", "confidence": 0.95}
    return Check.model_validate({"id": name, "question": "?", "level": level, **answer})


def first(
    counts: np.ndarray | None = None,
    found: Evidence | None = None,
    check: str = "claimed-epsilon",
    k: int = 2,
    truth: bool = True,
) -> str:
    known = Circumstances(truth=truth, counts=counts, channel=rr(1.0, k).channel)
    answer = failed(check)
    signs = Signs(case(found or evidence(), claim=rr(1.0, k)), known, [answer])
    return next(causes(signs, answer))


def test_noise_made_at_a_larger_epsilon_is_named_with_that_epsilon() -> None:
    assert "the counts fit ε = 3.00 for every label" in first(counted(rr(3.0).channel.matrix))
    assert "ε = 2.50" in first(counted(rr(2.5, 4).channel.matrix), k=4)


def test_no_noise_at_all() -> None:
    assert "every label was released as it is" in first(counted(np.eye(2)))


def test_true_labels_of_the_release_itself_look_as_if_there_were_no_noise() -> None:
    assert "itself was given as the truth" in first(counted(np.eye(2)))


NOISE = rr(1.0, 4).noise
SLIPS = {
    "the formula for two labels, e^ε/(1 + e^ε), is used for 4 labels": math.e / (1 + math.e),
    "the chance of a changed label is used as λ": 1 - (NOISE * 3 / 4) * 3 / 4,
    "λ and 1 − λ are exchanged": 1 - (1 - NOISE) * 3 / 4,
    "λ is computed as e^−ε": 1 - math.exp(-1) * 3 / 4,
    "the noise is applied twice": 1 - (1 - (1 - NOISE) ** 2) * 3 / 4,
    "λ, the chance of a redraw, is used as that of a changed label": 1 - NOISE,
    "ε is doubled": math.exp(2) / (math.exp(2) + 3),
    "ε is halved": math.exp(0.5) / (math.exp(0.5) + 3),
    "powers of 10 are taken in place of powers of e": 10 / 13,
    "powers of 2 are taken in place of powers of e": 2 / 5,
}


@pytest.mark.parametrize("words", SLIPS)
def test_a_wrong_formula_is_named(words: str) -> None:
    kept = SLIPS[words]
    matrix = np.full((4, 4), (1 - kept) / 3)
    np.fill_diagonal(matrix, kept)
    assert words in first(counted(matrix, 10_000_000), k=4)


def test_a_slip_needs_counts_that_fit_it() -> None:
    assert likely_slip(counted(rr(1.7).channel.matrix, 1_000_000), rr(1.0).channel) is None


def test_one_class_treated_unfairly_is_named() -> None:
    matrix = rr(1.0, 3).channel.matrix.copy()
    matrix[1] = [0.03, 0.94, 0.03]
    sentence = first(counted(matrix, 30_000), k=3)
    assert "class 1 is treated differently" in sentence
    assert "(kept in 94 % of its rows, where the claim keeps 58 %)" in sentence


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("assumptions.shared_noise", "noise that rows share"),
        ("assumptions.feature_blind", "uses a feature"),
        ("mechanism.marginal_consistency", "after the noise"),
    ],
)
def test_tests_that_failed_are_causes(name: str, words: str) -> None:
    assert words in first(found=evidence(p_value(name, 1e-6)))
    assert words not in first(found=evidence(p_value(name, 0.3)))


def test_a_seed_that_was_found_comes_first() -> None:
    assert "from the operating system" in first(
        counted(rr(3.0).channel.matrix), check="guessable-seed"
    )


def test_counts_that_follow_the_claim_point_to_some_of_the_rows() -> None:
    assert "some leak more than all do" in first(counted(rr(1.0).channel.matrix))


@pytest.mark.parametrize(("group", "named"), [(2.5, True), (1.2, False), (0.9, False)])
def test_a_group_that_leaks_more_than_all_rows_is_looked_for(group: float, named: bool) -> None:
    bounds = {"mechanism.subgroup_epsilon_lower": group, "mechanism.epsilon_lower": 1.3}
    estimates = (Estimate.lower_bound(name, "", low, 0.95) for name, low in bounds.items())
    sentence = first(counted(rr(1.35).channel.matrix), evidence(*estimates))
    assert ("some leak more than all do" in sentence) == named


def test_rows_in_the_clear_at_random_are_an_alternative() -> None:
    """A fifth in the clear: as many kept as where the noise is a fifth smaller."""
    matrix = 0.8 * rr(1.0).channel.matrix + 0.2 * np.eye(2)
    assert "20 % of rows released as they are would look alike" in first(counted(matrix))
    assert "released as they are" not in first(counted(rr(0.8).channel.matrix))


def test_without_truth_a_derived_column_is_thought_of() -> None:
    assert "computed from the released label" in first(truth=False)


def test_a_limit_that_is_exceeded_though_the_claim_holds() -> None:
    assert "more than this limit" in first(check="label-inference-advantage")


def test_what_nothing_explains() -> None:
    assert first().startswith("Compare the declaration with the release code")


def test_honest_counts_have_no_cause() -> None:
    """Of 200 honest releases of 2,000 rows about one in a hundred has a row unlike the claim.

    More than 12 have probability below 1e-6.
    """
    rng = np.random.default_rng(3)
    odd = 0
    for _ in range(200):
        truth = rng.integers(0, 3, 2000).astype(np.int32)
        released = rr(1.0, 3).sample(truth, rng)
        counts = np.zeros((3, 3), dtype=np.int64)
        np.add.at(counts, (truth, released), 1)
        odd += bool(unlike_the_claim(counts, rr(1.0, 3).channel.matrix).any())
    assert odd <= 12


def test_the_fit_recovers_the_epsilon_of_a_simulated_release() -> None:
    """Six standard errors of a log-odds on 20,000 rows."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 20_000).astype(np.int32)
    counts = np.zeros((2, 2), dtype=np.int64)
    np.add.at(counts, (truth, rr(2.0).sample(truth, rng)), 1)
    found = fitted_epsilon(counts, rr(1.0).channel)
    assert found is not None
    assert abs(found - 2.0) < 6 / math.sqrt(20_000 * 0.88 * 0.12)


def test_a_judgement_puts_causes_before_the_repair() -> None:
    counts = counted(rr(3.0).channel.matrix)
    found = evidence(power(0.1), epsilon=3.0)
    steps = judged(found, counts=counts, channel=CLAIM.channel).next_steps
    assert "the counts fit ε = 3.00" in steps[0]
    assert steps[-1] == "Fix the release code, draw the noise again and audit that release."
    assert len(steps) <= 3


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ("identifiers", "number rows or may lead to a person"),
        ("shared-noise", "noise that rows share"),
        ("composition", "Draw noise once for each person"),
    ],
)
def test_a_check_that_only_warns_says_what_to_look_at(check: str, words: str) -> None:
    known = Circumstances(counts=counted(rr(3.0).channel.matrix), channel=CLAIM.channel)
    steps = next_steps("not yet", case(evidence()), known, [failed(check, "warn")])
    assert words in steps[0]
    assert "waive the check" in steps[1]
    assert words in first(check=check)


def steps_of(
    *checks: Check, found: Evidence | None = None, **circumstances: Any
) -> tuple[str, ...]:
    known, grave = Circumstances(**circumstances), {c.verdict for c in checks if c.level == "error"}
    decision: Any = "do not publish" if "fail" in grave else "not yet" if checks else "publish"
    return next_steps(decision, case(found or evidence()), known, checks)


@pytest.mark.parametrize("check", ["label-inference-accuracy", "label-inference-advantage"])
def test_a_limit_on_attacks_alone_is_no_fault_of_the_code(check: str) -> None:
    counts = counted(CLAIM.channel.matrix)
    steps = " ".join(steps_of(failed(check), counts=counts, channel=CLAIM.channel))
    assert "Add noise" in steps
    assert "release code" not in steps
    both = steps_of(failed(check), failed("claimed-epsilon"), counts=counts, channel=CLAIM.channel)
    assert "Fix the release code" in " ".join(both)


def test_features_that_exceed_a_limit_alone_are_named_instead_of_the_noise() -> None:
    alone = Estimate.estimated("attack.features-only.accuracy", "", 2.5, unit="proportion")
    (step,) = steps_of(failed("label-inference-accuracy"), found=evidence(alone))
    assert step.startswith("Remove features")
    assert "smaller --epsilon" not in step


def test_the_first_step_is_about_the_gravest_check() -> None:
    channel = {"counts": counted(rr(3.0).channel.matrix), "channel": CLAIM.channel}
    warned, grave = failed("identifiers", "warn"), failed("claimed-epsilon")
    steps = steps_of(warned, grave, **channel)
    assert "the counts fit ε = 3.00" in steps[0]
    steps = steps_of(failed("composition", "warn"), failed("label-inference-accuracy"))
    assert steps[0].startswith("Add noise")
    assert "once for each person" in steps[1]


ORDERED = Estimate.estimated("columns.ordered", "", 1.0)


def revealed(*evidence: str) -> Check:
    return failed("features-reveal-label", "warn").model_copy(
        update={"evidence": evidence, "observed": 0.5, "confidence": None}
    )


def test_rows_whose_order_reveals_labels_are_to_be_shuffled() -> None:
    steps = steps_of(revealed("columns.ordered"), found=evidence(ORDERED))
    assert steps[0].startswith("Shuffle the rows")
    assert not any("very file" in step or "Remove the columns" in step for step in steps)
    deciding = Estimate.estimated("columns.deciding", "", 1.0)
    steps = steps_of(revealed("columns.deciding"), found=evidence(deciding))
    assert steps[0].startswith("Remove the columns that reveal the label")
    assert "Shuffle" not in " ".join(steps)


def test_a_file_that_has_to_be_changed_is_not_published_as_it_is() -> None:
    """Also where the policy asks nothing about the order of the rows."""
    steps = steps_of(found=evidence(ORDERED), changes=("Remove the columns.",))
    assert steps[0].startswith("Shuffle the rows: their order reveals labels. Remove the columns.")
    assert "very file" not in " ".join(steps)
    assert "with its declaration" in steps_of()[0]


def test_a_claim_that_is_not_in_the_file_is_to_be_declared() -> None:
    steps = steps_of(declared=False)
    command = "ldpaudit declare RELEASE --mechanism randomized-response --epsilon 1"
    assert steps[0].endswith(f": {command}")
    assert "with its declaration" not in " ".join(steps)


def test_an_audit_that_is_too_weak_by_a_warning_gets_no_advice_about_noise() -> None:
    (first, *_) = steps_of(failed("undetected-excess", "warn"), truth=False)
    assert first == "Give the true labels (--truth)."
