"""Several private columns: each is audited, and all together."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from extras.several.columns_of_people import CLASSES, released_vector, shared_draws, vector_of
from levels import check_level

import ldpaudit
from ldpaudit.audits.interface import Plan
from ldpaudit.errors import InputError, PolicyError
from ldpaudit.extras.several.walk import AnswersTree
from ldpaudit.extras.several.words import Words, steps_of
from ldpaudit.judging.policy import Policy
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.pipeline import audit as one_audit
from ldpaudit.pipeline.terms import Terms
from ldpaudit.result import AuditResult
from ldpaudit.result.audit_result import consistent

FAST = ("assumptions", "mechanism", "power")


def audit(file, *terms, **options):
    """Audit the private columns of a file in memory."""
    return one_audit.audit(AnswersTree.of(file), Terms(*terms, **options))


@pytest.fixture(scope="module")
def honest():
    return audit(released_vector(400), Plan(seed=0), only=FAST)


@pytest.fixture(scope="module")
def leaking():
    """Return the audit of three columns of which the second tells more than is declared."""
    return audit(released_vector(600, used=(1.0, 4.0, 1.0)), Plan(seed=0), only=FAST)


def test_each_column_is_audited_with_the_same_ids(honest):
    result = honest
    first, _, third = result.labels
    assert [part.mechanism.epsilon for part in result.labels] == [1.0, 1.0, 1.0]
    assert {e.id for e in first.estimates} == {e.id for e in third.estimates}
    assert result.mechanism.epsilon == pytest.approx(3.0)
    assert consistent(result)
    assert AuditResult.from_json(result.to_json()) == result
    assert all(part.release.label for part in result.labels)


def test_a_column_that_leaks_more_is_found_and_named(leaking):
    result = leaking
    assert result.verdict == "fail"
    assert "column label1" in result.sentence
    assert len(result.next_steps) <= 3
    unbounded = {"verdict": "inconclusive", "observed": None}
    (whole,) = (check for check in result.checks if check.id == "claimed-epsilon")
    words = Words("column", "the 3 columns together", ("label0", "label1", "label2"))
    told = whole.model_copy(update=unbounded | {"reason": "it was not bounded"})
    for ran in (True, False):
        steps = steps_of([told], result.labels, words, None, ran=ran)
        assert any("--only person" in step for step in steps) == (not ran)


def test_a_waived_violation_of_the_whole_stays_one():
    file = "a" * 64
    waiver = {"check": "claimed-epsilon", "release_sha256": file, "expires": "2999-12-31"}
    waiver |= {"reason": "accepted", "approved_by": "A. Smith"}
    policy = Policy.model_validate(
        {"schema": 1, "checks": {"claimed-epsilon": {"level": "error"}}, "waivers": [waiver]}
    )
    made = shared_draws(600)
    columns = tuple(replace(column, sha256=file) for column in made.columns)
    file = replace(made, columns=columns, sha256=file)
    result = audit(file, Plan(seed=0), policy, only=("mechanism", "person", "power"))
    assert result.verdict == "pass"
    assert result.sentence.startswith("Violation found, waived until 2999-12-31 by A. Smith: ")
    assert "No violation" not in result.sentence


def test_the_error_probability_is_shared(honest):
    assert honest.labels[0]["mechanism.epsilon_lower"].level == pytest.approx(1 - 0.05 / 4)


def test_an_audit_that_does_not_exist_is_named():
    with pytest.raises(InputError, match="no audit 'nothing'"):
        audit(released_vector(100), Plan(seed=0), only=("nothing",))


def test_the_other_columns_help_to_guess_a_column():
    file = released_vector(1_000, claimed=(1.0, 3.0, 3.0))
    result = audit(file, Plan(seed=0), only=("companions",))
    first = result.labels[0]
    gain = first["companions.attack_gain"]
    assert gain.low > 0.02
    assert gain.kind == "certified"
    assert first["companions.accuracy_with"].value > first["companions.accuracy_without"].value


def test_columns_that_have_nothing_to_do_with_each_other_tell_nothing():
    rng = np.random.default_rng(1)
    labels = np.stack([rng.integers(0, len(k), 1_000) for k in CLASSES], axis=1)
    labels = labels.astype(np.int32)
    claims = [RandomizedResponse.from_epsilon(k, 2.0) for k in CLASSES]
    noisy = [claim.sample(labels[:, j], rng) for j, claim in enumerate(claims)]
    file = vector_of(labels, noisy, rng.normal(size=1_000), (2.0, 2.0, 2.0))
    first = audit(file, Plan(seed=0), only=("companions",)).labels[0]
    assert first["companions.attack_gain"].low <= 0
    assert first["companions.attack_gain"].value < 0.02


def test_a_shared_draw_is_found_though_each_column_is_as_declared():
    result = audit(shared_draws(1_000), Plan(seed=0), only=("mechanism", "person"))
    assert result.verdict == "fail"
    assert "goes along with another's" in result.sentence
    assert "two columns" in result.next_steps[0]
    assert result.check("claimed-channel").verdict == "fail"


def test_independent_draws_are_no_joint_mechanism_and_the_sentence_says_so():
    rng = np.random.default_rng(1)
    true = rng.integers(0, 2, (2_000, 2))
    drawn = np.where(rng.random(true.shape) < 0.5, true, rng.integers(0, 2, true.shape))
    truth, released = (pd.DataFrame(codes, columns=["a", "b"]) for codes in (true, drawn))
    joint = {"name": "joint-rr", "domains": [[0, 1], [0, 1]], "epsilon": 2.4}
    labels = [{"label": "a"}, {"label": "b"}]
    released.attrs["ldpaudit"] = json.dumps({"version": 2, "labels": labels, "mechanism": joint})
    result = ldpaudit.audit(released, truth=truth, only=["mechanism", "person"])
    assert "do not follow the joint mechanism" in result.sentence
    assert "goes along" not in result.sentence
    # The mechanism is another one, but these two columns tell no more than ε = 2.4.
    assert result.check("claimed-channel").verdict == "fail"
    assert result.check("claimed-epsilon").verdict != "fail"


def test_the_policys_claim_is_about_the_whole():
    policy = Policy.model_validate(
        {"claim": {"epsilon": 2.0}, "checks": {"claimed-epsilon": {"level": "error"}}}
    )
    asked = ("mechanism", "person")
    result = audit(released_vector(200), Plan(seed=0), policy, only=asked)
    assert result.verdict == "fail"
    assert "ε = 3 is declared over 3 columns" in result.sentence
    assert "fewer columns" in result.next_steps[0]


def test_the_advice_names_no_file_and_comes_last(leaking):
    assert leaking.next_steps[-1].endswith("ldpaudit advise RELEASE --truth TRUTH")
    alone = audit(released_vector(200, truth=False), Plan(seed=0), only=FAST)
    assert not any("advise" in step for step in alone.next_steps)


@pytest.mark.validate
def test_an_honest_release_fails_at_most_one_time_in_twenty():
    asked = (*FAST, "person")

    def failed(seed):
        released = released_vector(1_000, seed=seed)
        return audit(released, Plan(seed=seed), only=asked).verdict == "fail"

    check_level(failed, 200, 0.05)
    shared = (shared_draws(seed=seed) for seed in range(20))
    assert all(audit(one, Plan(seed=0), only=(*FAST, "person")).verdict == "fail" for one in shared)


POLICY = 'schema = 1\n[audit]\nconfidence = 0.8\n[claim]\nmechanism = "randomized-response"\n'


@pytest.fixture
def released():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 400)
    return pd.DataFrame({"label": np.where(rng.random(400) < 0.25, 1 - truth, truth)}), truth


@pytest.mark.parametrize(("limit", "allowed"), [(1.0, True), (0.999, False), (0.95, False)])
def test_more_than_the_policy_allows_is_refused_where_no_check_says_it(
    released, limit, allowed, tmp_path
):
    frame, _ = released
    path = tmp_path / "policy.toml"
    path.write_text(f"{POLICY}epsilon = {limit}\n[checks.claimed-channel]\n")
    made = ldpaudit.privatize(frame, label="label", mechanism="rr", epsilon=1.0)
    asked = {"policy": str(path), "only": ("mechanism",)}
    if allowed:
        assert ldpaudit.audit(made, **asked).mechanism.epsilon == pytest.approx(1.0)
    else:
        with pytest.raises(PolicyError, match="allows ε"):
            ldpaudit.audit(made, **asked)


def test_intervals_have_the_confidence_of_the_policy(released, tmp_path):
    frame, truth = released
    path = tmp_path / "policy.toml"
    path.write_text(f"{POLICY}epsilon = 1.5\n[checks.claimed-epsilon]\n")
    result = ldpaudit.audit(frame, truth=truth, policy=str(path), only=("mechanism",))
    assert result.estimate("mechanism.epsilon_lower").level == pytest.approx(0.8)
