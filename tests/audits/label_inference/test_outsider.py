from dataclasses import replace

import numpy as np
import pytest
from worlds import ASYMMETRIC, gaussian_release, gaussian_release_by

from ldpaudit.attacks import Knowledge, create_attack
from ldpaudit.attacks.interface import as_seen_by, without_truth
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.label_inference.audit import AUDIT, unbiased_accuracy
from ldpaudit.mechanisms import RandomizedResponse, UnknownMechanism

FALSE_ALARM = 1e-6
"""The probability that a validity test fails by chance."""


SYMMETRIC = RandomizedResponse.from_epsilon(("c0", "c1", "c2"), 1.5)


@pytest.fixture(scope="module")
def outsider():
    mechanism = ASYMMETRIC
    release = gaussian_release_by(mechanism, 800, 0, shift=0.8)
    context = AuditContext(replace(release, truth=None), mechanism, Plan(seed=1))
    finding = AUDIT.run(context)
    insider = AUDIT.run(AuditContext(release, mechanism, Plan(seed=1)))
    return finding, insider


def test_without_true_labels_accuracy_is_estimated_under_the_claim(outsider):
    found = {e.id: e for e in outsider[0].estimates}
    seen = {e.id: e for e in outsider[1].estimates}
    for name in ("prior", "released-label", "classifier", "bayes"):
        estimate = found[f"attack.{name}.accuracy"]
        assert estimate.kind == "estimated"
        assert "the claim holds" in estimate.assumptions[0]
        assert estimate.low <= estimate.value <= estimate.high
        inside = seen[f"attack.{name}.accuracy"]
        assert estimate.low <= inside.high
        assert inside.low <= estimate.high
    assert found["attack.best.accuracy"].low > found["attack.prior.accuracy"].value
    assert found["attack.bayes.advantage"].value > 0
    assert not outsider[0].bounds
    notes = " ".join(note.text for note in outsider[0].notes)
    assert "oracle" in notes
    assert "features-only" in notes


@pytest.mark.parametrize("mechanism", [SYMMETRIC, ASYMMETRIC], ids=["symmetric", "asymmetric"])
def test_values_are_unbiased_for_the_accuracy_of_a_fixed_attack(mechanism):
    release = gaussian_release_by(mechanism, 1500, 1, shift=0.8)
    attack = create_attack("bayes", Knowledge(mechanism.channel))
    attack.fit(as_seen_by(attack, release), np.random.default_rng(0))
    test = gaussian_release_by(mechanism, 12_000, 2, shift=0.8)
    guesses = attack.posterior(without_truth(test)).argmax(axis=1)
    values = unbiased_accuracy(attack, test, mechanism.channel)
    error = np.std(values - (guesses == test.truth)) / np.sqrt(len(values))
    # Five standard errors: a false alarm has probability 6e-7.
    assert abs(values.mean() - np.mean(guesses == test.truth)) < 5 * error


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (UnknownMechanism(), "no channel is declared"),
        (RandomizedResponse(("c0", "c1", "c2"), 1.0), "no inverse"),
    ],
)
def test_what_an_outsider_cannot_score_is_said(claim, reason):
    release, _ = gaussian_release(100, 1.0, 4, k=3, shift=0.8)
    context = AuditContext(replace(release, truth=None), claim, Plan(seed=1))
    assert reason in AUDIT.unavailable(context)
