"""What a verdict advises: each sign of a fault, and each way to be open, gives its sentence."""

import math
import string
from itertools import chain

import numpy as np
import pytest
from judging.cases import (
    CLAIM,
    bound,
    case,
    counted,
    curve,
    evidence,
    judged,
    p_value,
    power,
    record,
)

from ldpaudit.judging.advice import TABLE, TEXTS, facts_about, facts_of, next_steps, said
from ldpaudit.judging.checks.columns import leads_back
from ldpaudit.judging.checks.interface import Circumstances, Evidence
from ldpaudit.judging.checks.listing import CHECKS, audit_behind
from ldpaudit.judging.fits import fitted_epsilon, likely_slip, signs, unlike_the_claim
from ldpaudit.judging.policy import check_names, parse_policy
from ldpaudit.mechanisms import Channel, LabelRange, RandomizedResponse, UnknownMechanism
from ldpaudit.mechanisms.noise import Laplace
from ldpaudit.mechanisms.view import group_channel, numeric_view, view_family
from ldpaudit.release import label_table
from ldpaudit.result import Check, Estimate

ROWS = [
    pytest.param(kind, row, id=row["say"][:50])
    for kind in ("failed", "open")
    for row in TABLE[kind]
]


def rr(epsilon, k=2):
    return RandomizedResponse.from_epsilon(tuple(range(k)), epsilon)


def answered(name, level="error", verdict="fail", **more):
    answer = {"limit": 1.0, "observed": 2.0, "verdict": verdict, "confidence": 0.95}
    fields = {"id": name, "question": "?", "level": level, **answer, **more}
    return Check.model_validate(fields)


def told(found, check, k=2, **known):
    mine = case(found, claim=rr(1.0, k), known=Circumstances(**known))
    return list(said(mine, facts_of(mine, [check]), check))


def first(matrix=None, found=None, k=2, rows=100_000):
    """The likeliest cause of a violated claim, by the counts of a channel."""
    counts = None if matrix is None else counted(matrix, rows)
    check = answered("claimed-epsilon")
    return told(found or evidence(), check, k, counts=counts, channel=rr(1.0, k).channel)[0]


def steps_of(*checks, found=None, **known):
    grave = {c.verdict for c in checks if c.level == "error"}
    decision = "do not publish" if "fail" in grave else "not yet" if checks else "publish"
    return next_steps(decision, case(found or evidence(), known=Circumstances(**known)), checks)


def number(name, value):
    return Estimate.estimated(name, "", value)


@pytest.mark.parametrize(("kind", "row"), ROWS)
def test_every_row_renders(kind, row):
    """Each names checks and facts that there are, and repeats only facts that it asks for."""
    checks = row["check"] if isinstance(row["check"], list) else [row["check"]]
    groups = TABLE["groups"]
    names = list(chain.from_iterable(groups.get(name, [name]) for name in checks))
    names = list(CHECKS) if names == ["any"] else names
    assert set(names) <= CHECKS.keys()
    everything = Circumstances(counts=counted(np.eye(2)), channel=CLAIM.channel)
    for name in names:
        check = answered(name, verdict="fail" if kind == "failed" else "inconclusive")
        mine = case(evidence(), known=everything)
        facts = {**TEXTS, **facts_of(mine, [check]), **facts_about(mine, check)}
        fits = {"slip", "slip_epsilon", "clear_share", "odd_classes", "kept", "promised"}
        known = facts.keys() | fits | {"rows_enough", "interval"}
        asked = [part.removeprefix("not ") for part in row.get("when", "truth").split(" and ")]
        assert set(asked) <= known
        fields = [field for _, field, _, _ in string.Formatter().parse(row["say"]) if field]
        assert set(fields) <= known
        text = row["say"].format_map(dict.fromkeys(fits | known, "42") | TEXTS)
        assert text[0].isupper() or text.startswith("42")
        assert text == "42" or text.endswith((".", '"', ")."))


def test_noise_made_at_a_larger_epsilon_is_named_with_that_epsilon():
    assert "the counts fit ε = 3.00 for every label" in first(rr(3.0).channel.matrix)
    assert "ε = 2.50" in first(rr(2.5, 4).channel.matrix, k=4)


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
def test_a_wrong_formula_is_named(words):
    kept = SLIPS[words]
    matrix = np.full((4, 4), (1 - kept) / 3)
    np.fill_diagonal(matrix, kept)
    assert words in first(matrix, k=4, rows=10_000_000)


@pytest.mark.parametrize("people", [5, 80])
def test_no_slip_is_named_where_no_label_was_changed(people):
    """Five people a class could all keep their labels at ε = 8; eighty could not."""
    known = {"counts": people * np.eye(50, dtype=np.int64), "channel": rr(1.0, 50).channel}
    steps = told(evidence(), answered("claimed-epsilon"), 50, **known)
    assert "every label was released unchanged" in steps[0]
    assert not any("the counts fit" in step or "treated differently" in step for step in steps)


@pytest.mark.parametrize("true", [1.4, 0.7])
def test_many_classes_hide_no_wrong_epsilon(true):
    """The shares of unchanged labels differ from the claim's by six standard errors or more."""
    counts = counted(rr(true, 50).channel.matrix, 10_000)
    found = signs(counts, rr(1.0, 50).channel)
    assert abs(found["epsilon"] - true) < 0.1


def test_a_slip_needs_counts_that_fit_it():
    assert likely_slip(counted(rr(1.7).channel.matrix, 1_000_000), rr(1.0).channel) is None


UNFAIR = rr(1.0, 3).channel.matrix.copy()
UNFAIR[1] = [0.03, 0.94, 0.03]
CLEAR = 0.8 * rr(1.0).channel.matrix + 0.2 * np.eye(2)


@pytest.mark.parametrize(
    ("matrix", "k", "words"),
    [
        (
            np.eye(2),
            2,
            "every label was released unchanged. If the release itself was given as the true",
        ),
        (UNFAIR, 3, "class 1 is treated differently from the others (kept in 94 % of its rows, "),
        (UNFAIR, 3, "where the claim keeps 58 %)"),
        (rr(1.0).channel.matrix, 2, "Compare the declaration with the release code"),
        (CLEAR, 2, "Releasing 20 % of the rows unchanged"),
        (None, 2, "Compare the declaration with the release code"),
    ],
)
def test_what_counts_look_like(matrix, k, words):
    assert words in first(matrix, k=k, rows=30_000)
    assert "of the rows unchanged" not in first(rr(0.8).channel.matrix)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("assumptions.shared_noise", "noise that rows share"),
        ("assumptions.feature_blind", "release code uses a feature"),
        ("mechanism.marginal_consistency", "after the noise"),
    ],
)
def test_tests_that_failed_are_causes(name, words):
    assert words in first(found=evidence(p_value(name, 1e-6)))
    assert words not in first(found=evidence(p_value(name, 0.3)))


@pytest.mark.parametrize(("group", "named"), [(2.5, True), (1.2, False), (0.9, False)])
def test_a_group_that_leaks_more_than_all_rows_is_looked_for(group, named):
    bounds = {"mechanism.subgroup_epsilon_lower": group, "mechanism.epsilon_lower": 1.3}
    estimates = (Estimate.lower_bound(name, "", low, 0.95) for name, low in bounds.items())
    sentence = first(rr(1.35).channel.matrix, evidence(*estimates))
    assert ("some leak more than the release as a whole" in sentence) == named


@pytest.mark.parametrize(
    ("check", "known", "words"),
    [
        ("guessable-seed", {}, "from the operating system"),
        ("claimed-epsilon", {"truth": False}, "computed from the released label"),
        ("label-inference-advantage", {}, "more than this limit"),
        ("identifiers", {}, "Remove the columns that number the rows, ids"),
        ("shared-noise", {}, "noise that rows share"),
        ("composition", {}, "Draw noise once per person"),
    ],
)
def test_a_failed_check_says_what_to_look_at(check, known, words):
    assert words in told(evidence(), answered(check), **known)[0]
    steps = steps_of(answered(check, "warn"), **known)
    assert words in steps[0]
    assert "a waiver for this file" in steps[1]


@pytest.mark.parametrize("option", ["--only", "--skip"])
def test_what_was_left_out_by_name_is_open_without_a_policy(option):
    """Whoever asks for some audits alone asks no question that others answer."""
    left = judged(evidence(epsilon=0.9), left_out={"seeds": option, "power": "--only"})
    seeds = [check for check in left.checks if check.id == "guessable-seed"]
    assert [check.verdict for check in seeds] == (["inconclusive"] if option == "--skip" else [])
    assert not any(check.id in ("shared-noise", "composition") for check in left.checks)


@pytest.mark.parametrize("check", [name for name in CHECKS if name != "min-rows"])
@pytest.mark.parametrize("truth", [False, True])
def test_every_check_that_fails_has_a_step(check, truth):
    assert told(evidence(), answered(check), truth=truth)


def test_honest_counts_have_no_cause():
    """Of 200 honest releases of 2,000 rows about one in a hundred has a row unlike the claim.

    More than 12 have probability below 1e-6.
    """
    rng = np.random.default_rng(3)
    odd = 0
    for _ in range(200):
        truth = rng.integers(0, 3, 2000).astype(np.int32)
        counts = np.zeros((3, 3), dtype=np.int64)
        np.add.at(counts, (truth, rr(1.0, 3).sample(truth, rng)), 1)
        odd += bool(unlike_the_claim(counts, rr(1.0, 3).channel.matrix).any())
    assert odd <= 12


def test_the_fit_recovers_the_epsilon_of_a_simulated_release():
    """Six standard errors of a log-odds on 20,000 rows."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 20_000).astype(np.int32)
    counts = np.zeros((2, 2), dtype=np.int64)
    np.add.at(counts, (truth, rr(2.0).sample(truth, rng)), 1)
    found = fitted_epsilon(counts, rr(1.0).channel)
    assert found is not None
    assert abs(found - 2.0) < 6 / math.sqrt(20_000 * 0.88 * 0.12)


LAPLACE = Laplace(LabelRange(0.0, 10.0), 1.0)
VIEW = numeric_view(LAPLACE, 10_000)


def of_numbers(epsilon, clear=0.0, odd=None, rows=20_000):
    """Return counts of uniform numbers with noise, a share as they are, and the claim's family."""
    rng = np.random.default_rng(5)
    truth = rng.uniform(0, 10, rows)
    groups, noisy = VIEW.classes.codes(truth), Laplace(LabelRange(0.0, 10.0), epsilon)
    kept = (rng.random(rows) < clear) | (groups == odd)
    released = np.where(kept, truth, noisy.release(truth, rng))
    counts = np.zeros((len(VIEW.classes), len(VIEW.outputs)), dtype=np.int64)
    np.add.at(counts, (groups, VIEW.outputs.codes(released)), 1)
    return counts, group_channel(LAPLACE, VIEW, truth), view_family(LAPLACE, VIEW, truth)


def test_of_numbers_the_mechanism_itself_is_fitted():
    found = signs(*of_numbers(3.0))
    assert abs(float(found["fitted_epsilon"]) - 3.0) < 0.15
    assert "odd_classes" not in found
    assert fitted_epsilon(*of_numbers(3.0)[:2]) is None


@pytest.mark.parametrize("clear", [0.03, 0.06, 0.2])
def test_no_group_of_numbers_is_named_where_all_are_released_otherwise(clear):
    found = signs(*of_numbers(1.0, clear))
    assert found
    assert "odd_classes" not in found


def test_the_group_of_numbers_is_named_that_is_released_otherwise():
    assert signs(*of_numbers(1.0, odd=4))["odd_classes"].startswith("class ")


def test_no_class_is_named_where_the_others_do_not_agree_with_the_claim():
    matrix = np.full((6, 6), 0.1) + 0.4 * np.eye(6)
    claimed = Channel(matrix, tuple(range(6)), tuple(range(6)))
    shifted = np.roll(matrix, 1, axis=1) * 0.03 + matrix * 0.97
    shifted[2] = np.roll(matrix[2], 1)
    assert "odd_classes" not in signs(counted(shifted, 100_000), claimed)
    alone = matrix.copy()
    alone[2] = np.roll(matrix[2], 1)
    assert signs(counted(alone, 100_000), claimed)["odd_classes"] == "class 2 is"


def test_where_every_class_that_occurs_is_odd_none_is_named():
    """Three of ten declared classes, each with a favoured label."""
    claimed = RandomizedResponse.from_epsilon(tuple("abcdefghij"), 2.0).channel
    counts = np.zeros((10, 10), dtype=np.int64)
    counts[:3] = np.rint(1000 * (0.5 * claimed.matrix[:3] + 0.5 * np.eye(10)[4]))
    assert "odd_classes" not in signs(counts, claimed)


@pytest.mark.parametrize("kind", ["next", "always first", "own column"])
@pytest.mark.parametrize(
    ("shares", "epsilon"),
    [((0.8, 0.05, 0.05, 0.05, 0.05), 1.0), ((0.5, 0.3, 0.1, 0.05, 0.05), 2.0)],
)
def test_a_large_class_is_not_named_for_what_all_have_in_common(kind, shares, epsilon):
    rng, named = np.random.default_rng(3), 0
    claimed = rr(epsilon, 5).channel
    noise = 5 / (math.exp(epsilon) + 4)
    for _ in range(60):
        truth = rng.choice(5, 500, p=shares)
        other = {
            "next": (truth + rng.integers(0, 3, 500)) % 5,
            "always first": np.zeros(500, dtype=int),
            "own column": rng.permutation(truth),
        }[kind]
        released = np.where(rng.random(500) < noise, other, truth)
        named += "odd_classes" in signs(label_table(truth, released, 5, 5), claimed)
    assert named <= 6


def test_an_epsilon_that_is_nearly_the_claimed_one_is_not_named():
    for epsilon, named in ((1.03, False), (1.2, True)):
        counts = counted(rr(epsilon, 2).channel.matrix, 1_000_000)
        check = answered("claimed-epsilon")
        steps = " ".join(told(evidence(), check, 2, counts=counts, channel=rr(1.0, 2).channel))
        assert ("the counts fit" in steps) == named


LEAK = {"counts": counted(rr(3.0).channel.matrix), "channel": CLAIM.channel}


def test_a_judgement_puts_causes_before_the_repair():
    steps = judged(evidence(power(0.1), epsilon=3.0), **LEAK).next_steps
    assert "the counts fit ε = 3.00" in steps[0]
    assert steps[-1] == TEXTS["fix"]
    assert len(steps) <= 3


def test_the_first_step_is_about_the_gravest_check():
    steps = steps_of(answered("identifiers", "warn"), answered("claimed-epsilon"), **LEAK)
    assert "the counts fit ε = 3.00" in steps[0]
    steps = steps_of(answered("composition", "warn"), answered("label-inference-accuracy"))
    assert steps[0].startswith("Add noise")
    assert "once per person" in steps[1]


@pytest.mark.parametrize("check", ["label-inference-accuracy", "label-inference-advantage"])
def test_a_limit_on_attacks_alone_is_no_fault_of_the_code(check):
    known = {"counts": counted(CLAIM.channel.matrix), "channel": CLAIM.channel}
    steps = " ".join(steps_of(answered(check), **known))
    assert "Add noise" in steps
    assert "release code" not in steps
    assert TEXTS["fix"] in steps_of(answered(check), answered("claimed-epsilon"), **known)


def test_features_that_exceed_a_limit_alone_are_named_instead_of_the_noise():
    alone = evidence(number("attack.features-only.accuracy", 2.5))
    (step,) = steps_of(answered("label-inference-accuracy"), found=alone)
    assert step.startswith("Remove features")
    assert "smaller --epsilon" not in step


@pytest.mark.parametrize(
    ("name", "words", "other"),
    [
        ("columns.ordered", "Shuffle the rows", "Remove the columns"),
        ("columns.position", "Shuffle the rows", "Remove the columns"),
        ("columns.deciding", "Remove the columns that reveal the label", "Shuffle"),
    ],
)
def test_what_reveals_labels_is_to_be_changed(name, words, other):
    check = answered("features-reveal-label", "warn", evidence=(name,), confidence=None)
    steps = steps_of(check, found=evidence(number(name, 1.0)))
    assert steps[0].startswith(words)
    assert other not in " ".join(steps)
    assert "very file" not in " ".join(steps)


def test_a_file_that_has_to_be_changed_is_not_published_as_it_is():
    """Also where the policy asks nothing about the order of the rows."""
    found = evidence(number("columns.ordered", 1.0))
    steps = steps_of(found=found)
    assert steps[0].startswith("Shuffle the rows: their order reveals labels. Then audit the new")
    assert "very file" not in " ".join(steps)
    assert "with its declaration" in steps_of()[0]


def test_a_claim_that_is_not_in_the_file_is_to_be_declared():
    steps = steps_of(declared=False)
    command = "ldpaudit declare RELEASE --mechanism randomized-response --epsilon 1"
    assert steps[0].endswith(f": {command}")
    assert "with its declaration" not in " ".join(steps)


@pytest.mark.parametrize("level", ["error", "warn"])
def test_an_audit_that_is_too_weak_gets_no_advice_about_noise(level):
    (step, *_) = steps_of(answered("undetected-excess", level), truth=False)
    assert step == "Give the true labels (--truth)."


def policy(text):
    return parse_policy(f"schema = 1\n{text}")


TRUTH = "Give the true labels (--truth)"
BY_TRUTH, NEEDED = "power.with_truth.min_detectable_excess", "power.rows_needed"


def test_an_audit_that_is_missing_is_named_with_the_reason():
    unknown = Evidence({}, {}, {"release_only.epsilon_lower": bound(0.3)})
    skipped = (record("power", "no channel is declared that could be sharpened."),)
    result = judged(unknown, truth=False, records=skipped)
    assert "because the audit power did not run: no channel is declared" in result.sentence
    assert result.next_steps[0] == f"{TRUTH}."
    nothing = judged(evidence(), left_out={"mechanism": "--only", "power": "--only"})
    assert nothing.next_steps == ("Run the audit mechanism, too (--only mechanism).",)
    asked = policy('[checks.renyi-epsilon]\nlevel = "error"\nalpha = 2.0\nmax = 3.0\n')
    lacking = record("renyi", "The Rényi audit needs at least 400 rows.")
    result = judged(evidence(power(0.1), epsilon=1.0), asked, records=(lacking,))
    assert "at least 400 rows" in result.next_steps[0]


@pytest.mark.parametrize(
    ("option", "step"),
    [
        ("--only", "Run the audit power, too (--only power)."),
        ("--skip", "Run the audit power: do not leave it out (--skip power)."),
    ],
)
def test_an_audit_that_the_user_left_out_is_named(option, step):
    result = judged(evidence(epsilon=0.9), left_out={"power": option})
    assert f"not known, because the audit power was left out ({option})." in result.sentence
    assert result.next_steps == (step,)


LOSS = "[checks.instance-loss-exceedance]\nat = 6.0\nmax = 0.05\n"
ADVANTAGE, RENYI = (
    "[checks.label-inference-advantage]\nmax = 0.05\n",
    "[checks.renyi-epsilon]\nmax = 3.0",
)


def test_the_audit_behind_each_check_is_named():
    audits = ("instance-loss", "label-inference", "renyi")
    left_out = dict.fromkeys(audits, "--only")
    result = judged(evidence(), policy(LOSS + ADVANTAGE + RENYI), left_out=left_out)
    for check, audit in zip(result.checks, audits, strict=True):
        assert f"because the audit {audit} was left out (--only)" in check.reason
    assert result.next_steps == tuple(
        f"Run the audit {audit}, too (--only {audit})." for audit in audits
    )


def attack(value, half, kind="certified"):
    fields = {"id": "attack.best.advantage", "kind": kind, "value": value, "low": value - half}
    more = {"high": value + half, "side": "two-sided", "level": 0.95}
    return Estimate.model_validate(fields | more)


def test_the_least_number_of_rows_is_said_whether_met_or_not():
    few = judged(evidence(), policy("[audit]\nmin_rows = 6000"))
    assert few.sentence == "Inconclusive: 5,000 rows, 6,000 needed."
    assert few.next_steps[0].startswith("Release at least 6,000 rows")
    enough = judged(evidence(), policy("[audit]\nmin_rows = 1000"))
    assert enough.checks[0].reason == "5,000 rows, 1,000 needed"


@pytest.mark.parametrize("truth", [False, True])
@pytest.mark.parametrize("claim", [CLAIM, UnknownMechanism(), RandomizedResponse((0, 1), 0.0)])
def test_every_inconclusive_verdict_has_a_step(claim, truth):
    for found in (evidence(), evidence(epsilon=0.9), evidence(power(2.0), epsilon=0.9)):
        result = judged(found, claim=claim, truth=truth)
        assert result.verdict == "inconclusive"
        assert result.next_steps


@pytest.mark.parametrize("check", check_names())
@pytest.mark.parametrize("truth", [False, True])
def test_every_check_without_evidence_has_a_reason_and_a_step_of_its_own(check, truth):
    limits = {
        "instance-loss-exceedance": "at = 6.0\nmax = 0.1",
        "label-inference-advantage": "max = 0.1",
        "label-inference-accuracy": "max = 0.1",
        "renyi-epsilon": "max = 1.0",
    }
    asked = policy(f"[checks.{check}]\n{limits.get(check, '')}")
    lacking = record(audit_behind(check) or "mechanism", "The reason.")
    result = judged(evidence(), asked, truth=truth, records=(lacking,))
    if result.checks and result.checks[0].verdict == "inconclusive":
        assert result.checks[0].reason
        assert not result.next_steps[0].startswith("See in the report")


def outsider(*estimates, epsilon=0.3):
    every = {e.id: e for e in (power(1.787, "estimated"), *estimates)}
    return Evidence(every, {}, {"release_only.epsilon_lower": bound(epsilon)})


def of_curve(name, value, low):
    return Evidence({}, {name: curve(name, value, low)}, {})


WITHOUT = {"truth": False}
OPEN = {
    "nothing known of more": (outsider(), WITHOUT, (f"{TRUTH}.",)),
    "true labels": (
        outsider(number(BY_TRUTH, 0.0391)),
        WITHOUT,
        (f"{TRUTH}: with them this audit would detect an excess of 0.0391.",),
    ),
    "true labels and rows": (
        outsider(number(BY_TRUTH, 0.9), number("power.with_truth.rows_needed", 36_000)),
        WITHOUT,
        ("with 41,000 rows the 0.5 that the policy allows",),
    ),
    "rows of an outsider": (
        outsider(number(NEEDED, 36_000)),
        WITHOUT,
        ("", "", "From the release alone an estimated 41,000 rows in total would be enough"),
    ),
    "rows of an insider": (
        evidence(power(0.7), number(NEEDED, 36_000), epsilon=0.9),
        {},
        (
            "41,000 in total, 36,000 more, to detect an excess of 0.5.",
            "max_undetected_excess = 0.7 ",
        ),
    ),
    "rows that share noise": (
        evidence(
            *(power(0.7), number(NEEDED, 300), number("assumptions.counted_rows", 400)), epsilon=0.9
        ),
        {},
        ("Look for noise that rows share", "300 more rows, each with its own noise"),
    ),
    "no claim": (
        evidence(power(0.1), epsilon=0.9),
        {"claim": UnknownMechanism()},
        ("--mechanism rr --epsilon 1",),
    ),
    "an infinite claim": (
        evidence(power(0.1), epsilon=9),
        {"claim": RandomizedResponse((0, 1), 0.0)},
        ("an infinite ε",),
    ),
    # Four times nearer to the limit than it is wide: 16 times the rows, and a tenth more.
    "a score beside its limit": (
        evidence(attack(0.04, 0.04)),
        {"policy": policy(ADVANTAGE)},
        ("This check cannot be decided with so few rows; a release of about 89,000 rows",),
    ),
    "a score at its limit": (
        evidence(attack(0.05, 0.05)),
        {"policy": policy(ADVANTAGE)},
        ("The score is too close to the limit",),
    ),
    "an estimated score": (
        evidence(attack(0.2, 0.1, "estimated")),
        {"policy": policy(ADVANTAGE), **WITHOUT},
        (f"{TRUTH}: attacks are scored against them.",),
    ),
    "a loss": (
        of_curve("instance_loss.exceedance", 0.06, 0.01),
        {"policy": policy(LOSS)},
        ("--queries all",),
    ),
    "a divergence": (
        of_curve("renyi.release", 1.0, 1.0), {"policy": policy(RENYI)}, ("more rows",)
    ),
    "another channel": (
        outsider(
            *(power(0.1, "estimated"), p_value("mechanism.channel_consistency", 1e-9)), epsilon=0.9
        ),
        {},
        ("Find out why the labels do not follow",),
    ),
    "perhaps the features": (
        evidence(p_value("assumptions.feature_blind", 0.03)),
        {},
        ("Find out whether the release code uses the features",),
    ),
    "checks that only warn": (
        evidence(power(0.1), epsilon=1.0),
        {"policy": policy('[checks.claimed-epsilon]\nlevel = "warn"')},
        ("ldpaudit:default",),
    ),
}  # fmt: skip
"""Evidence, what is known besides, and words of the first steps."""


@pytest.mark.parametrize("name", OPEN)
def test_what_to_do_where_the_verdict_is_open(name):
    found, known, words = OPEN[name]
    result = judged(found, **known)
    assert result.verdict == "inconclusive"
    for step, expected in zip(result.next_steps, words, strict=False):
        assert expected in step


@pytest.mark.parametrize(("missed", "said"), [(0.1, False), (0.7, True)])
def test_no_larger_excess_is_allowed_than_the_policy_allows_already(missed, said):
    check = answered("claimed-epsilon", verdict="inconclusive")
    steps = told(evidence(power(missed), epsilon=0.9), check, truth=True)
    assert any("max_undetected_excess" in step for step in steps) == said


@pytest.mark.parametrize(
    ("claim", "labels"),
    [
        (rr(1.0), ""),
        (Laplace(LabelRange(0.0, 100.0), 1.0), " --labels 0:100"),
        (Laplace(LabelRange(-0.5, 2.5, 0.25), 1.0), " --labels -0.5:2.5:0.25"),
    ],
)
def test_what_could_be_released_instead_is_asked_of_numbers_as_numbers(claim, labels):
    weak = evidence(power(3.0), epsilon=claim.epsilon)
    step = judged(weak, claim=claim, truth=True, advisable=True).next_steps[-1]
    assert step.endswith(f"ldpaudit advise RELEASE --truth TRUTH{labels}")


def test_rows_without_end_are_not_advised():
    none = judged(evidence(power(math.inf), number(NEEDED, math.inf), epsilon=0.9))
    assert not any("in total" in step or "∞" in step for step in none.next_steps)


@pytest.mark.parametrize(
    ("columns", "reason", "step"),
    [
        ({"identifiers": ["id"]}, "column 'id' may", "Remove the column 'id' from the file."),
        (
            {"identifiers": ["id"], "dates": ["a", "b", "c", "d"]},
            "5 columns may lead back to a person: 'id' differs in nearly every row, "
            "'a', 'b', 'c' and 1 more hold exact dates",
            "Remove the columns 'id', 'a', 'b' and 2 more from the file.",
        ),
    ],
)
def test_columns_that_may_lead_back_to_a_person_are_named(columns, reason, step):
    concerns = {f"columns.{kind}": tuple(names) for kind, names in columns.items()}
    counted_ones = {name: len(names) for name, names in concerns.items()}
    assert leads_back(counted_ones, concerns).startswith(reason)
    assert steps_of(answered("identifiers", "warn"), concerns=concerns)[0] == step
    assert "may lead back" in leads_back(counted_ones, {})


def test_a_bound_above_the_claim_is_a_lower_bound():
    (check,) = [c for c in judged(evidence(power(0.1), epsilon=3.0)).checks if c.level == "error"][
        :1
    ]
    assert (check.id, check.verdict, check.side) == ("claimed-epsilon", "fail", "lower")
