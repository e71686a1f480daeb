"""Label proportions as a mechanism: exact analysis, noise, and refused parameters."""

import math

import numpy as np
import pytest

from ldpaudit.errors import InputError
from ldpaudit.mechanisms import from_declaration
from ldpaudit.mechanisms.aggregates.label_proportions import LabelProportions
from ldpaudit.release import Declaration

CLASSES = ("no", "yes")


def test_without_noise_nothing_is_promised():
    made = LabelProportions("bag", CLASSES)
    assert made.epsilon == math.inf
    assert made.delta(5.0) == 1
    assert made.rdp(2.0) == math.inf
    assert made.channel is None
    assert "no finite ε" in made.description


@pytest.mark.parametrize("noise", ["laplace", "geometric"])
def test_noise_has_its_exact_curve(noise):
    made = LabelProportions("bag", CLASSES, noise, 1.5)
    assert made.epsilon == 1.5
    assert made.delta(1.5) == pytest.approx(0, abs=1e-15)
    assert 0 < made.rdp(2.0) < made.rdp(8.0) <= 1.5 == made.rdp(math.inf)
    x = np.arange(-60, 61).astype(float)
    steps = np.diff(made.noise_cdf(x))
    assert made.noise_cdf(np.array([-1e3, 1e3])).tolist() == pytest.approx([0, 1])
    if noise == "geometric":
        q = math.exp(-1.5)
        pmf = (1 - q) / (1 + q) * q ** np.abs(x[1:])
        assert np.allclose(steps, pmf, atol=1e-15)
        tv = 0.5 * np.abs(pmf[1:] - pmf[:-1]).sum()
        assert made.delta(0.0) == pytest.approx(tv, abs=1e-9)


@pytest.mark.parametrize("noise", ["none", "laplace", "geometric"])
def test_what_is_released_has_the_noise_declared(noise):
    rng = np.random.default_rng(6)
    members, labels = np.repeat(np.arange(5000), 4), rng.integers(0, 2, 20_000).astype(np.int32)
    made = LabelProportions("bag", CLASSES, noise, None if noise == "none" else 1.0)
    released = made.release(labels, members, rng)
    assert (released.reshape(-1, 4) == released[::4, None]).all()
    residual = 4 * released[::4] - labels.reshape(-1, 4).sum(axis=1)
    for x in (-1.5, -0.5, 0.5, 1.5):
        # Five standard errors of a share of 5,000: a flake has a probability below 6e-7.
        share, expected = (residual <= x).mean(), float(made.noise_cdf(np.array(x)))
        assert abs(share - expected) <= 5 * math.sqrt(expected * (1 - expected) / 5000) + 1e-9


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "state 'bag'"),
        ({"bag": 3, "classes": CLASSES}, "name of a column"),
        ({"bag": "b", "classes": ("a", "b", "c")}, "two classes"),
        ({"bag": "b", "classes": CLASSES, "noise": "gauss"}, "'noise' parameter must be one of"),
        ({"bag": "b", "classes": CLASSES, "noise": "laplace"}, "'epsilon' with noise"),
        ({"bag": "b", "classes": CLASSES, "epsilon": 1.0}, "'epsilon' with noise"),
        ({"bag": "b", "classes": CLASSES, "noise": "laplace", "epsilon": 0}, "above 0"),
        ({"bag": "b", "classes": CLASSES, "size": 3}, "unknown"),
    ],
)
def test_what_cannot_be_declared(parameters, message):
    with pytest.raises(InputError, match=message):
        from_declaration(Declaration("label-proportions", parameters), ())


def test_a_declaration_comes_back():
    made = LabelProportions("ward", CLASSES, "geometric", 0.5, "sum")
    assert from_declaration(Declaration(made.name, dict(made.declaration())), ()) == made
