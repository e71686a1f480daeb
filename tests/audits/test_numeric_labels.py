"""Whole audits of releases whose labels are numbers."""

import math

import numpy as np
import pandas as pd
import pytest
from estimators.test_close_numbers import people as people_with_numbers
from estimators.test_close_numbers import planted
from levels import check_level

import ldpaudit
from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.mechanisms.unbiased import optimal_unbiased
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import DiscreteLaplace, Laplace, Staircase

WEEKS, REAL = LabelRange(0, 20, 1), LabelRange(0.0, 10.0)
ONLY = ("mechanism", "power")


def people(n, rng, top):
    x = rng.standard_normal((n, 2))
    return x, np.clip(rng.gamma(2.0, top / 8, n) + x[:, 0], 0, top)


def release(mechanism, n=6000, seed=1):
    rng = np.random.default_rng(seed)
    grid = mechanism.labels if hasattr(mechanism, "labels") else WEEKS
    x, truth = people(n, rng, grid.high)
    if grid.step is not None:
        truth = np.rint(truth).astype(int)
    noisy = mechanism.release(truth, rng)
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "label": noisy}), truth


def lower(result, name="mechanism.epsilon_lower"):
    return next(e.value for e in result.estimates if e.id == name)


def made(name, epsilon):
    if name == "laplace":
        return Laplace(REAL, epsilon)
    if name == "discrete-laplace":
        return DiscreteLaplace(WEEKS, epsilon)
    return optimal_unbiased(WEEKS.classes, np.full(21, 1 / 21), epsilon).mechanism


@pytest.mark.parametrize(
    "name", [pytest.param("laplace", marks=pytest.mark.validate), "discrete-laplace"]
)
def test_an_honest_release_passes_and_a_dishonest_one_fails(name):
    frame, truth = release(made(name, 1.0), 30_000)
    honest = ldpaudit.audit(frame, truth, made(name, 1.0), only=ONLY)
    assert honest.verdict == "pass"
    assert 0.3 < lower(honest) <= 1.0
    frame, truth = release(made(name, 3.0), 3000)
    dishonest = ldpaudit.audit(frame, truth, made(name, 1.0), only=ONLY)
    assert dishonest.verdict == "fail"
    assert 1.0 < lower(dishonest) <= 3.0


def test_every_audit_runs():
    frame, truth = release(made("laplace", 2.0), 200)
    result = ldpaudit.audit(frame, truth, made("laplace", 2.0))
    assert {a.id for a in result.audits if a.status == "ran"} >= {"mechanism", "label-inference"}
    assert result.mechanism.epsilon == 2.0
    names = {e.id for e in result.estimates}
    assert {"mechanism.max_bias", "attack.best.accuracy", "instance_loss.mean"} <= names
    assert {"mechanism.rdp", "mechanism.delta"} <= {c.id for c in result.curves}


def test_without_true_labels_grouped_ones_are_said_to_be_unknown():
    frame, _ = release(made("laplace", 2.0), 400)
    result = ldpaudit.audit(frame, None, made("laplace", 2.0))
    reasons = {a.id: a.reason for a in result.audits if a.status != "ran"}
    assert "grouped" in reasons["instance-loss"]
    assert lower(result, "release_only.epsilon_lower") <= 2.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "x"}, "must be a number"),
        ({"label": np.nan}, "missing"),
        ({"label": np.inf}, "infinite"),
        ({"label": 3.0}, "at least two"),
    ],
)
def test_released_labels_that_cannot_be(change, message):
    frame, truth = release(made("discrete-laplace", 1.0), 500)
    with pytest.raises(InputError, match=message):
        ldpaudit.audit(frame.assign(**change), truth, made("discrete-laplace", 1.0))


def test_labels_outside_of_the_declaration_are_counted():
    frame, truth = release(made("optimal-unbiased", 1.0), 500)
    claim, other = made("optimal-unbiased", 1.0), np.where(np.arange(500) < 3, 77, truth)
    with pytest.raises(InputError, match="one of the declared labels; 3 of"):
        ldpaudit.audit(frame, other, claim)
    # Its outputs tell its ε: those of ε = 3 are not those of ε = 1.
    frame, truth = release(made("optimal-unbiased", 3.0), 500)
    with pytest.raises(InputError, match=r"released label must be .* outputs; \d+ of 500"):
        ldpaudit.audit(frame, truth, claim)
    frame, truth = release(made("laplace", 1.0), 30)
    with pytest.raises(InputError, match="at least 40 rows"):
        ldpaudit.audit(frame, truth, made("laplace", 1.0))


@pytest.mark.validate
@pytest.mark.parametrize("name", ["laplace", "discrete-laplace"])
def test_the_bound_holds_as_often_as_its_level_says(name):
    def missed(seed):
        frame, truth = release(made(name, 1.0), 500, seed)
        return lower(ldpaudit.audit(frame, truth, made(name, 1.0), only=("mechanism",))) > 1.0

    check_level(missed, 300, 0.05)


def test_more_rows_are_not_asked_for_first_where_the_channel_is_refuted():
    rng, claim, n = np.random.default_rng(3), Laplace(REAL, 4.0), 3_000
    truth = rng.uniform(0, 10, n)
    near = truth + rng.normal(0, 0.3, n)
    released = np.where(rng.random(n) < 0.4, near, claim.release(truth, rng))
    frame = pd.DataFrame({"a": rng.normal(size=n), "label": released})
    result = ldpaudit.audit(frame, truth, claim, only=ONLY)
    channel = next(check for check in result.checks if check.id == "claimed-channel")
    assert (channel.verdict, result.decision) == ("fail", "not yet")
    first, second, *_ = result.next_steps
    assert "Release more rows" not in first
    assert "Release more rows" in second


@pytest.mark.parametrize("kind", ["among tens", "sums of households"])
def test_true_numbers_of_some_people_in_a_column_are_told(kind):
    rng, truth = people_with_numbers(1)
    columns = planted(kind, rng, truth)
    claim = Laplace(LabelRange(0.0, 100.0), 2.0)
    frame = pd.DataFrame({f"x{i}": column for i, column in enumerate(columns)})
    frame["label"] = claim.release(truth, rng)
    result = ldpaudit.audit(frame, truth, claim, only=ONLY)
    assert result.decision == "not yet"
    (note,) = [note.text for note in result.notes if "holds the true number" in note.text]
    told = "told by column x1, column x0" if len(columns) > 1 else "column x0"
    assert told in note
    frame["x0"] = truth + rng.normal(0, 10, len(truth))
    honest = ldpaudit.audit(frame, truth, claim, only=ONLY)
    assert not [note for note in honest.notes if "holds the true number" in note.text]


@pytest.mark.parametrize("grouped", [True, False])
def test_remembered_answers_of_people_with_several_rows_are_no_rows_in_the_clear(grouped):
    rng, claim = np.random.default_rng(2), Laplace(LabelRange(0.0, 1e5), 2.0)
    truth, person = 1e5 * rng.beta(2, 3, 800), np.repeat(np.arange(800), 4)
    frame = pd.DataFrame({"age": rng.integers(20, 80, 800), "score": rng.normal(size=800).round(3)})
    frame = frame.iloc[person].assign(label=claim.release(truth, rng)[person])
    if grouped:
        frame["person"] = person
    group = "person" if grouped else None
    result = ldpaudit.audit(frame, truth[person], claim, only=ONLY, group=group)
    texts = " ".join(note.text for note in result.notes)
    assert "shows the true one" not in texts
    assert "the true label of" not in texts.lower()
    if grouped:
        assert "the noise has few values" not in texts
        assert not any(
            step.endswith("Draw noise for each row on its own.") for step in result.next_steps
        )


@pytest.mark.parametrize("way", ["by size in batches", "a seed for each batch", "honest"])
@pytest.mark.parametrize("name", ["discrete-laplace", "staircase", "rr-on-bins"])
def test_the_size_of_noise_is_looked_at(name, way):
    """Its sign alone says nothing of where labels were kept, or left nearly as they were."""
    rng, n, batch = np.random.default_rng(7), 2000, 100
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.integers(0, 9, n)})
    truth = np.clip(np.rint(rng.normal(10, 4, n)), 0, 20)
    if name == "rr-on-bins":
        bins = {"starts": [0, 11], "outputs": [5, 15], "classes": list(range(21))}
        claim = {"name": name, "epsilon": 2.0, **bins}
        numbers = rng.random(n)
        if way == "a seed for each batch":
            numbers = np.tile(numbers[:batch], n // batch)
        inside = truth >= 11
        released = np.where((numbers < math.exp(2) / (1 + math.exp(2))) == inside, 15.0, 5.0)
    else:
        law = DiscreteLaplace if name == "discrete-laplace" else Staircase
        claim = law(WEEKS if law is DiscreteLaplace else LabelRange(0.0, 20.0), 2.0)
        released = claim.release(truth, rng)
        if way == "a seed for each batch":
            noise = released - truth
            released = truth + np.tile(noise[:batch], n // batch)
    if way == "by size in batches":
        size = np.abs(released - truth).reshape(-1, batch).argsort(axis=1, kind="stable")
        rows = (size + np.arange(0, n, batch)[:, None]).ravel()
        truth, released = truth[rows], released[rows]
        frame = frame.iloc[rows].reset_index(drop=True)
    found = ldpaudit.audit(frame.assign(label=released), truth, claim, only="assumptions")
    p_value = found.estimate("assumptions.shared_noise").value
    assert p_value > 0.01 if way == "honest" else p_value < 1e-6
