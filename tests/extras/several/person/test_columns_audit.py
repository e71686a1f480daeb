from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from audits.found import check, value
from extras.several.columns_of_people import CLASSES, released_vector, true_vectors, vector_of
from extras.several.person.worlds import by_inverse, response
from worlds import TURNED, gaussian_release_by

from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.estimators.epsilon.release_only import ReleaseOnlyEvidence
from ldpaudit.extras.several.files import FileColumns
from ldpaudit.extras.several.joint import JointRR, RandomSampling
from ldpaudit.extras.several.person import audit as person_audit
from ldpaudit.extras.several.person.answers import Answers
from ldpaudit.extras.several.person.audit import AUDIT
from ldpaudit.extras.several.person.guessing import OTHER_COLUMNS, _right
from ldpaudit.extras.several.person.noise import columns_noise
from ldpaudit.extras.several.related import Companions
from ldpaudit.mechanisms import from_declaration
from ldpaudit.release import ColumnsDeclaration, Declaration, Strata

EPSILON, LOWER, TOGETHER = "person.epsilon", "person.epsilon_lower", "person.independence"


def context_of(file: FileColumns, seed: int = 0) -> AuditContext:
    first = file.columns[0]
    claim = from_declaration(first.declaration, first.classes)
    return AuditContext(first, claim, Plan(seed=seed), related=Companions(file, 0))


def found(file: FileColumns):
    return AUDIT.run(context_of(file))


def with_seed_shared(n: int = 2_000, seed: int = 1) -> FileColumns:
    """Return columns whose draws come from the same uniform numbers."""
    rng = np.random.default_rng(seed)
    labels, x = true_vectors(n, rng)
    u = rng.random(n)
    noisy = [by_inverse(response(len(k), 1.0), labels[:, j], u) for j, k in enumerate(CLASSES)]
    return vector_of(labels, noisy, x, (1.0, 1.0, 1.0))


def released_jointly(kind: type, n: int = 2_000, *, used: float = 1.0, truth: bool = True):
    rng = np.random.default_rng(3)
    labels, x = true_vectors(n, rng)
    noisy = kind(CLASSES, used).sample(labels, rng).T
    columns = kind(CLASSES, 1.0).columns
    file = vector_of(labels, list(noisy), x, [c.epsilon for c in columns], truth=truth)
    assert file.declaration is not None
    stated = {"domains": [list(k) for k in CLASSES], "epsilon": 1.0}
    labelled = tuple(replace(one, mechanism=None) for one in file.declaration.labels)
    return replace(file, declaration=ColumnsDeclaration(labelled, Declaration(kind.name, stated)))


def test_honest_columns_are_bounded_near_their_sum():
    finding = found(released_vector(2_000))
    check(finding, {EPSILON: (2.999, 3.001), LOWER: (0.8 * 3, 3.0), TOGETHER: (0.05, 1)})
    assert not finding.notes
    assert finding.bounds[LOWER](0.001) < finding.bounds[LOWER](0.05)


def test_shared_draws_are_found_and_columns_are_not_added_up():
    expected = {TOGETHER: (0, 1e-6), LOWER: (3.5, 99), f"{LOWER}.added": None}
    check(found(with_seed_shared()), expected, "goes along with another's")


@pytest.mark.parametrize("kind", [JointRR, RandomSampling])
@pytest.mark.parametrize("used", [1.0, 2.0])
def test_joint_mechanisms_are_held_against_their_own_epsilon(kind, used):
    exact = kind(CLASSES, 1.0).epsilon
    leaks = {LOWER: (exact, 99), TOGETHER: (0, 0.001)}
    honest = {LOWER: (0.5 * exact, exact), TOGETHER: (0.01, 1)}
    expected = {EPSILON: (0.999 * exact, 1.001 * exact)} | (leaks if used > 1 else honest)
    check(found(released_jointly(kind, used=used)), expected)


def test_without_true_labels_the_release_alone_is_asked():
    expected = {LOWER: None, TOGETHER: (0, 1), "person.release_only_epsilon_lower": (0, 3.0)}
    check(found(released_vector(600, truth=False)), expected)
    assert found(released_jointly(JointRR, 450, truth=False)).estimates
    strong = found(released_vector(3_000, truth=False))
    check(strong, {"person.release_only_epsilon_lower": (0.1, 3.0)})


def test_released_vectors_that_no_true_ones_explain_are_found():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (3_000, 3)).astype(np.int32)
    flips = (rng.random(3_000) < 0.27).astype(np.int32)
    # The true labels of the first and third column are the same everywhere: so is the noise.
    labels[:, 0] = labels[:, 2]
    noisy = [labels[:, 0] ^ flips, labels[:, 1], labels[:, 2] ^ flips]
    file = vector_of(labels, noisy, rng.normal(size=3_000), (1.0,) * 3, truth=False)
    p_value, _ = columns_noise(Answers.of(context_of(file)), rng)
    assert p_value is not None
    assert p_value < 1e-6


def by_region(channels: list, n: int = 2_500, *, truth: bool = True) -> FileColumns:
    """Return columns with two channels each, by a public region that is the only feature."""
    rng = np.random.default_rng(4)
    labels, _ = true_vectors(n, rng)
    strata = rng.integers(0, 2, n).astype(np.int32)
    noisy = []
    for j, own in enumerate(channels):
        each = [by_inverse(np.array(c), labels[:, j], rng.random(n)) for c in own]
        noisy.append(np.where(strata == 1, each[1], each[0]).astype(np.int32))
    file = vector_of(labels, noisy, strata, (1.0,) * len(channels), truth=truth)
    columns, declared = [], []
    for j, one in enumerate(file.columns):
        known = {"name": "channel", "classes": list(CLASSES[j]), "outputs": list(CLASSES[j])}
        stated = [
            {"value": value, "mechanism": {**known, "matrix": np.array(c).tolist()}}
            for value, c in zip(("north", "south"), channels[j], strict=True)
        ]
        claim = Declaration("by-stratum", {"strata": stated})
        columns.append(replace(one, declaration=claim, strata=Strata(strata, 2)))
        declared.append(replace(file.declaration.labels[j], mechanism=claim, by="region"))
    declaration = ColumnsDeclaration(tuple(declared))
    return replace(file, columns=tuple(columns), declaration=declaration)


@pytest.mark.parametrize(
    ("epsilons", "claimed", "least"),
    [(((0.5, 1.0),) * 3, 3.0, 1.8), (((0.25, 2.0), (2.0, 0.25), (0.25, 1.0)), 3.25, 2.2)],
)
def test_columns_add_up_and_are_compared_within_a_stratum_only(epsilons, claimed, least):
    channels = [
        [response(len(k), e) for e in own] for k, own in zip(CLASSES, epsilons, strict=True)
    ]
    expected = {EPSILON: (0.999 * claimed, 1.001 * claimed), LOWER: (least, claimed)}
    check(found(by_region(channels)), expected | {TOGETHER: (0.01, 1)})


def test_strata_that_differ_are_no_leak_without_true_labels():
    north, south = [[0.9, 0.1], [0.8, 0.2]], [[0.1, 0.9], [0.2, 0.8]]
    wide = np.array([[0.8, 0.1, 0.1]] * 3)
    file = by_region([[north, south], [wide, wide[:, ::-1]], [north, south]], truth=False)
    finding = found(file)
    bounds = [e.value for e in finding.estimates if e.id == "person.release_only_epsilon_lower"]
    assert max(bounds, default=0.0) <= value(finding, "person.epsilon") < 2


def test_without_a_claim_columns_are_still_bounded():
    file = released_vector(2_000)
    columns = tuple(replace(one, declaration=None) for one in file.columns)
    check(found(replace(file, columns=columns, declaration=None)), {LOWER: (2.0, 99)})


def test_a_column_with_one_true_label_is_no_fault():
    rng = np.random.default_rng(0)
    labels, x = true_vectors(500, rng)
    labels[:, 1] = 0
    noisy = [
        by_inverse(response(len(k), 1), labels[:, j], rng.random(500))
        for j, k in enumerate(CLASSES)
    ]
    finding = found(vector_of(labels, noisy, x, (1.0,) * 3))
    check(finding, {LOWER: (0.01, 3.0), f"{LOWER}.added": None})


def test_the_audit_is_for_several_columns():
    alone = replace(context_of(released_vector(100)), related=None)
    assert AUDIT.unavailable(alone) == "the release has one private column"


def test_a_gain_is_an_estimate_where_rows_share_noise():
    rng = np.random.default_rng(0)
    labels, x = true_vectors(200, rng)
    noisy = [
        by_inverse(response(len(k), 1.0), labels[:, j], rng.random(200))
        for j, k in enumerate(CLASSES)
    ]
    for times, kind in ((1, "certified"), (5, "estimated")):
        many = [np.repeat(part, times, axis=0) for part in (labels, np.stack(noisy, axis=1), x)]
        file = vector_of(many[0], list(many[1].T), many[2], (1.0, 1.0, 1.0))
        gain = OTHER_COLUMNS.run(context_of(file)).estimates[0]
        assert (gain.id, gain.kind) == ("companions.attack_gain", kind)


@pytest.mark.parametrize("wide", [False, True], ids=["as one label, too", "too many values"])
def test_the_error_probability_is_shared_out_between_columns_and_all_as_one(wide, monkeypatch):
    spent = []

    class Evidence(ReleaseOnlyEvidence):
        def __init__(self, epsilon):
            object.__setattr__(self, "epsilon", epsilon)

        def bound(self, alpha):
            spent.append(alpha)
            return SimpleNamespace(epsilon=self.epsilon)

    monkeypatch.setattr(person_audit, "outsider_evidence", lambda _: Evidence(0.4))
    monkeypatch.setattr(person_audit, "evidence_alone", lambda *_: Evidence(1.0))
    if wide:
        monkeypatch.setattr(person_audit, "_MOST_VALUES", 1)
    answers = Answers.of(context_of(released_vector(200, truth=False)))
    bound = person_audit._bound_alone(answers, adds_up=True)
    assert bound(0.05) == pytest.approx(1.2)
    assert len(spent) == (3 if wide else 4)
    assert sum(spent) == pytest.approx(0.05)
    assert len(set(spent[:3])) == 1
    spent.clear()
    alone = person_audit._bound_alone(answers, adds_up=False)
    assert (alone is None) == wide
    if alone is not None:
        assert (alone(0.05), spent) == (1.0, [pytest.approx(0.05)])


def test_answers_are_simulated_from_the_true_labels(monkeypatch):
    answers = Answers.of(context_of(released_jointly(JointRR, 80)))
    monkeypatch.setattr(type(answers.domains), "sample", lambda _, codes, __: codes)
    drawn, people = answers.simulated(np.random.default_rng(5)), answers.bounded
    assert (drawn == answers.truth[people]).all()
    assert (drawn != answers.released[people]).any()


def test_what_is_guessed_from_a_released_label_follows_the_direction_of_its_channel():
    release = gaussian_release_by(TURNED, 1_500, 3, shift=0.0)
    context = AuditContext(release, TURNED, Plan(seed=1))
    right = _right(context, release.features, own=True)
    # The likeliest of equally frequent labels: a third of the sum of the columns' largest chances.
    best = TURNED.label_channel.matrix.max(axis=0).sum() / 3
    assert right.mean() == pytest.approx(best, abs=0.06)
    assert _right(context, release.features, own=False).mean() < 0.45
