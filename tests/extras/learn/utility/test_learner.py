"""What learns from a release: corrected for its mechanism, and a network sees square images."""

import numpy as np
import pyarrow as pa
import pytest
from worlds import TURNED, gaussian_release_by

from ldpaudit.datasets import declare, read_release
from ldpaudit.datasets.companions import LabelledRows
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.extras.choose.sweep.points import _TrueCoding
from ldpaudit.extras.kinds.mechanisms.bins import DebiasedRR, RROnBins
from ldpaudit.extras.learn.utility.companions import row_likelihood
from ldpaudit.extras.learn.utility.learner import Learner, bias_correction
from ldpaudit.extras.learn.utility.scores import utility
from ldpaudit.learners import ReleaseRegressor
from ldpaudit.mechanisms import MechanismOptions, family
from ldpaudit.mechanisms.interface import NumericMechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.response import RandomizedResponse
from ldpaudit.mechanisms.view import DeclaredCoding
from ldpaudit.release import Declaration, FeatureTable, Release, ReleasedLabels


def images(rows, seed):
    """Return a bright row or a bright column anywhere in 8 × 8 noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rows).astype(np.int32)
    pixels = 0.3 * rng.random((rows, 8, 8), dtype=np.float32)
    for image, label, place in zip(pixels, labels, rng.integers(0, 8, rows), strict=True):
        image[(slice(None), place) if label else place] = 1
    return FeatureTable(pixels.reshape(rows, 64), np.empty((rows, 0), np.int32), (), 1), labels


@pytest.mark.parametrize(
    ("model", "least", "most"), [("network", 0.95, 1.0), ("logistic", 0.0, 0.8)]
)
def test_only_the_network_sees_lines_anywhere(model, least, most):
    (x, y), (other_x, other_y) = images(700, 0), images(400, 1)
    mechanism = RandomizedResponse((0, 1), 0.2)
    labels = ReleasedLabels(mechanism.sample(y, np.random.default_rng(2)))
    claim = Declaration(mechanism.name, dict(mechanism.declaration()))
    release = Release(x, labels, (0, 1), (0, 1), declaration=claim)
    test = LabelledRows(other_x, other_y, None)
    learnt = utility(release, test, Learner(model, "cpu"), 0.95, np.random.default_rng(3))
    assert learnt.correction.name == "forward"
    assert least <= learnt.estimate.value <= most
    assert learnt.scores.mean() == learnt.estimate.value


def test_a_table_has_a_dense_network_and_a_linear_model_none():
    x, _ = images(50, 0)
    narrow = FeatureTable(x.numeric[:, :63], x.categorical, (), 63)
    learner = Learner("network", "cpu")
    assert learner.network(x).architecture == "convolutional"
    assert learner.network(narrow).architecture == "dense"
    assert Learner("logistic").network(x) is None
    assert learner.matrix(x)(x).max() == x.numeric.max()


def numbers(seed, rows=2000):
    """Return one feature and the label 0 … 10 that it tells, give or take one."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 11, rows).astype(np.float64)
    x = (labels + rng.normal(0, 1, rows)).astype(np.float32)[:, None]
    return FeatureTable(x, np.empty((rows, 0), np.int32), (), 1), labels


LABELS = tuple(range(11))
DEBIASED = DebiasedRR(LABELS, 3.0)
BINS = RROnBins(LABELS, 3.0, (0, 4, 8), (1.5, 5.5, 9.0))


def read(x, mechanism, numbers, *, true=False):
    """Return a table as a release of a mechanism; a ``true`` one holds true labels."""
    claim = Declaration(mechanism.name, dict(mechanism.declaration()))
    table = declare(pa.table({"x": x.numeric[:, 0], "y": numbers}), claim, "y")
    return read_release(table, coding=_TrueCoding if true else DeclaredCoding).release


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [(DEBIASED, "unbiased under the declared mechanism"), (BINS, "bias cannot be undone")],
)
def test_a_bias_that_can_be_undone_is_undone(mechanism, words):
    (x, y), (other_x, other_y) = numbers(0), numbers(1)
    release = read(x, mechanism, mechanism.release(y, np.random.default_rng(2)))
    test, rng = LabelledRows(other_x, None, other_y), np.random.default_rng(3)
    learnt = utility(release, test, Learner("logistic"), 0.95, rng)
    found = learnt.estimate
    assert words in found.method
    assert learnt.reach == 100
    assert found.low <= found.value <= found.high
    assert found.value < 0.5 * other_y.var()
    told = read(x, mechanism, y, true=True)
    true = utility(told, test, Learner("logistic", true=True), 0.95, rng)
    assert true.correction.name is None
    assert "the true labels" in true.estimate.method
    assert true.estimate.value <= found.value


def test_a_bias_is_undone_where_that_lowers_the_error():
    """Of a model of p independent columns: p/n of the labels' variance, and their squared bias."""
    rng, n = np.random.default_rng(0), 400
    every = rng.standard_normal((2 * n, 40))
    mean = 5 + 2 * every[:, 0]
    y = np.clip(np.rint(mean + 0.5 * rng.standard_normal(2 * n)), 0, 10)
    for epsilon, p, undone in ((0.2, 40, False), (4.0, 2, True)):
        x = every[:, :p]
        options = MechanismOptions(epsilon=epsilon, labels=LabelRange(0, 10, 1))
        claim = family("exponential").from_options(options)
        assert isinstance(claim, NumericMechanism)
        errors = {False: [], True: []}
        for _ in range(20):
            released = claim.release(y[:n], rng)
            chosen = bias_correction(claim, released, p)
            assert (chosen.name == "unbiased") is undone
            for corrected, correction in ((False, None), (True, "unbiased")):
                model = ReleaseRegressor(claim, correction=correction)
                guesses = model.fit(x[:n], released).predict(x[n:])
                errors[corrected].append(float(((guesses - mean[n:]) ** 2).mean()))
        assert np.mean(errors[undone]) < np.mean(errors[not undone])
    assert bias_correction(BINS, np.array([1.5]), 1).name is None
    assert bias_correction(DEBIASED, DEBIASED.release(y, rng), 10**6).name == "unbiased"


def test_rows_that_measure_nothing_are_refused():
    (x, y), rng, learner = numbers(0), np.random.default_rng(0), Learner("logistic")
    release = read(x, DEBIASED, DEBIASED.release(y, rng))
    beyond = LabelledRows(x, None, np.where(np.arange(len(y)) == 5, 11.0, y))
    with pytest.raises(InputError, match="1 of 2,000 rows do not"):
        utility(release, beyond, learner, 0.95, rng)
    (pixels, labels), claim = images(50, 0), Declaration("unknown", {})
    release = Release(pixels, ReleasedLabels(labels), (0, 1), (0, 1), declaration=claim)
    one = LabelledRows(pixels, np.zeros(50, dtype=np.int32), None)
    with pytest.raises(InsufficientDataError, match="two different labels"):
        utility(release, one, learner, 0.95, rng)


def test_what_a_released_label_says_of_a_column_is_the_chance_of_it_under_each_true_one():
    release = gaussian_release_by(TURNED, 60, 2)
    law = TURNED.label_channel.matrix
    expected = [law[:, z] for z in release.released]
    assert row_likelihood(release, TURNED) == pytest.approx(np.array(expected))
