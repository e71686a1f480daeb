"""Labels between a mechanism's labels: the whole analysis against explicit mixtures."""

import numpy as np
import pytest

from ldpaudit.extras.learn.corrections import debiased_labels
from ldpaudit.mechanisms import from_declaration
from ldpaudit.mechanisms.analysis import privacy_of
from ldpaudit.mechanisms.interface import MechanismOptions
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.registry import family
from ldpaudit.mechanisms.rounded import RoundedLabels
from ldpaudit.mechanisms.view import group_channel, numeric_view, view_channel
from ldpaudit.release import Declaration

GRID = LabelRange(0, 6, 1)
PRIOR = np.array([0.4, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05])
NAMES = [
    "optimal-unbiased",
    "rr-on-bins",
    "debiased-rr",
    "discrete-laplace",
    "discrete-staircase",
    "exponential",
]
LABELS = np.array([0.0, 0.25, 1.0, 2.5, 5.9, 6.0])


def built(name, clipped=False):
    options = {"clipped": True} if clipped else {}
    needs = family(name).traits.needs
    return family(name).from_options(
        MechanismOptions(
            epsilon=1.0,
            classes=None if "range" in needs else GRID.classes,
            labels=GRID if "range" in needs else None,
            prior=PRIOR if "prior" in needs else None,
            settings=options,
        )
    )


CASES = [(name, False) for name in NAMES] + [("discrete-laplace", True)]


@pytest.mark.parametrize("method", ["unbiased", "nearest"])
@pytest.mark.parametrize(("name", "clipped"), CASES)
def test_it_is_the_mixture_of_its_neighbours_rows(name, clipped, method):
    inner = built(name, clipped)
    mechanism = RoundedLabels(inner, method)
    lower = np.minimum(np.floor(LABELS), 5).astype(int)
    up = LABELS - lower
    up = up if method == "unbiased" else (up > 0.5).astype(float)
    edges = [0.5, 2.0, 3.5]
    fine = inner.binned(edges).matrix
    expected = (1 - up)[:, None] * fine[lower] + up[:, None] * fine[lower + 1]
    assert mechanism.binned(edges, LABELS).matrix == pytest.approx(expected, abs=1e-14)
    released = np.array([0.0, 3.0, 6.0])
    at = inner.likelihood(released, GRID.values)
    mixed = (1 - up) * at[:, lower] + up * at[:, lower + 1]
    assert mechanism.likelihood(released, LABELS) == pytest.approx(mixed, abs=1e-14)
    means = GRID.values + inner.bias()
    first = (1 - up) * means[lower] + up * means[lower + 1]
    second = inner.variance() + means**2
    second = (1 - up) * second[lower] + up * second[lower + 1]
    assert mechanism.bias(LABELS) == pytest.approx(first - LABELS, abs=1e-9)
    assert mechanism.variance(LABELS) == pytest.approx(second - first**2, rel=1e-9)
    assert mechanism.channel is mechanism.label_values is None
    again = from_declaration(Declaration(name, mechanism.declaration()), ())
    assert again.description == mechanism.description != inner.description


@pytest.mark.parametrize(("name", "clipped"), CASES)
def test_its_privacy_is_exactly_the_mechanisms(name, clipped):
    inner = built(name, clipped)
    mechanism = RoundedLabels(inner, "unbiased")
    assert mechanism.epsilon == inner.epsilon
    assert privacy_of(mechanism).epsilon == privacy_of(inner).epsilon
    fine = mechanism.binned(inner.bin_edges(8), np.linspace(0, 6, 25))
    coarse = inner.binned(inner.bin_edges(8))
    # Mixtures leak nothing more, and the mechanism's own rows are among them.
    assert fine.epsilon == pytest.approx(coarse.epsilon, abs=1e-9)
    for epsilon in (0.0, 0.3, 0.8):
        assert fine.delta(epsilon) == pytest.approx(coarse.delta(epsilon), abs=1e-12)
        assert mechanism.delta(epsilon) == inner.delta(epsilon)
    assert fine.rdp(2.0) == pytest.approx(coarse.rdp(2.0), abs=1e-9)
    assert mechanism.rdp(2.0) == inner.rdp(2.0)


def test_the_audits_view_has_groups_of_labels_and_their_exact_channel():
    mechanism = RoundedLabels(built("rr-on-bins"), "unbiased")
    view = numeric_view(mechanism, 5000)
    assert view.classes.grouped
    assert view_channel(mechanism, view) is None
    truth = np.random.default_rng(0).uniform(0, 6, 4000)
    channel = group_channel(mechanism, view, truth)
    codes = view.classes.codes(truth)
    rows = mechanism.likelihood(mechanism.output_values, truth).T
    assert channel.matrix[3] == pytest.approx(rows[codes == 3].mean(axis=0), abs=1e-12)


def test_what_is_unbiased_on_the_grid_is_so_between_its_points():
    debiased = RoundedLabels(built("debiased-rr"), "unbiased")
    outputs = debiased_labels(debiased.output_values, debiased)
    mean = debiased.likelihood(debiased.output_values, LABELS).T @ outputs
    assert mean == pytest.approx(LABELS, abs=1e-9)
