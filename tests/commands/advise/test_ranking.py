"""The closed forms that rank mechanisms, against textbooks and draws; ε shared out; the search."""

import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from ldpaudit.commands.advise.candidates import (
    GRID,
    Line,
    Rows,
    information_share,
    largest_epsilon,
    share_error,
    shared_out,
)
from ldpaudit.commands.advise.work import Search, Tried, no_use, stops
from ldpaudit.commands.sweep.request import Point
from ldpaudit.judging.policy import parse_policy
from ldpaudit.result import Check, Estimate


def response(k: int, epsilon: float) -> np.ndarray:
    weight = math.exp(epsilon)
    return (np.ones((k, k)) + (weight - 1) * np.eye(k)) / (weight + k - 1)


def test_guesses_are_averaged_over_the_noise_exactly():
    rng, channel = np.random.default_rng(0), response(4, 1.0)
    posterior = rng.dirichlet(np.ones(4), 500)
    rows = Rows(posterior, np.array([rng.choice(4, p=p) for p in posterior], dtype=np.int32))
    expected, drawn = rows.right(channel), np.zeros(500)
    for _ in range(400):
        released = (rng.random((500, 1)) > channel[rows.truth].cumsum(axis=1)).sum(axis=1)
        drawn += (rows.posterior * channel.T[released]).argmax(axis=1) == rows.truth
    # The mean of 200,000 independent draws: six standard errors.
    assert abs(drawn.mean() / 400 - expected.mean()) < 6 * 0.5 / math.sqrt(200_000)
    assert np.array_equal(rows.right(np.ones((4, 1))), rows.alone)
    assert rows.right(np.eye(4)).all()


def test_the_information_of_a_noisy_label_is_the_textbooks():
    posterior = np.random.default_rng(2).dirichlet(np.ones(3), 50)
    assert information_share(posterior, np.eye(3)) == pytest.approx(1)
    assert information_share(posterior, np.full((3, 2), 0.5)) == pytest.approx(0)
    eta, flip = np.array([0.1, 0.5, 0.8]), 0.3
    noisy = eta * (1 - flip) + (1 - eta) * flip
    wanted = (1 - 2 * flip) ** 2 * eta * (1 - eta) / (noisy * (1 - noisy))
    channel = np.array([[1 - flip, flip], [flip, 1 - flip]])
    assert information_share(np.stack([1 - eta, eta], axis=1), channel) == pytest.approx(
        wanted.mean()
    )


def test_the_error_of_shares_is_that_of_draws():
    rng, channel, n = np.random.default_rng(3), response(3, 1.0), 2000
    prior = np.array([0.5, 0.3, 0.2])
    counts = (prior * n).astype(int)
    released = sum(rng.multinomial(c, row, 3000) for c, row in zip(counts, channel, strict=True))
    errors = (released / n @ np.linalg.inv(channel) - prior) ** 2
    # The root mean square of 9,000 errors: within 5 %, far beyond six standard errors.
    assert math.sqrt(errors.mean()) == pytest.approx(share_error(prior, channel, n), rel=0.05)
    assert share_error(np.array([0.5, 0.5]), np.full((2, 2), 0.5), 100) == math.inf


@pytest.mark.parametrize(
    ("claim", "most"),
    [
        ("", math.inf),
        ("[claim]\nepsilon = 0.7\n", 0.7),
        ('[claim]\nmechanism = "randomized-response"\nlambda = 0.5\n', math.log1p(3)),
    ],
)
def test_a_claim_is_a_largest_epsilon(claim, most):
    policy = parse_policy(f'schema = 1\nextends = "ldpaudit:default"\n{claim}')
    assert largest_epsilon(policy, 3) == pytest.approx(most)


@pytest.mark.parametrize(
    ("costs", "total", "shares"),
    [
        ([(8, 4, 2, 1), (8, 4, 2, 1)], 2.0, [1.0, 1.0]),  # Alike columns share alike.
        ([(8, 1, 0.9, 0.8), (8, 6, 4, 2)], 2.5, [1.0, 1.5]),  # ε goes where it is worth most.
        ([(3, 2), (3, 2, 1)], 9.0, [1.0, 1.5]),
        ([(2, 1), (2, 1)], 0.9, None),
        ([(5, 5, 0)], 1.5, [1.5]),  # A later gain is seen behind a flat start.
    ],
)
def test_epsilon_is_shared_out(costs, total, shares):
    columns = [[(0.5 * place, cost) for place, cost in enumerate(one, 1)] for one in costs]
    assert shared_out(columns, total) == shares


class Simulated(Search):
    """Releases that pass up to an ε, the second draw of each up to another."""

    passing = (1.2, 1.1)
    affordable = 99

    def measured(self, parts, until, draws=1):
        if self.drawn >= self.affordable:
            return None
        self.drawn += 1
        limit = self.passing[draws - 1]
        why = "" if parts[0].value <= limit else "too much"
        self.tried[parts] = Tried(parts, ("result",) * draws, why_not=why)
        return self.tried[parts]


@pytest.mark.parametrize("start", [0, 10, 24, 45])
@pytest.mark.parametrize("passing", [(1.2, 1.1), (8.0, 8.0), (0.05, 0.05), (0.0, 0.0)])
def test_the_least_noise_is_the_one_that_passes_twice(start, passing):
    line = Line(tuple((Point("rr", "epsilon", epsilon, 1),) for epsilon in GRID), start)
    search = Simulated([], None, 0.95, math.inf, None)
    search.passing = passing
    assert search.least_noise(line, 1.0)
    twice = [one for one in search.tried.values() if one.passes and len(one.results) == 2]
    assert [one.parts[0].value for one in twice] == ([passing[1]] if passing[1] else [])
    assert search.drawn <= 16
    search = Simulated([], None, 0.95, math.inf, None)
    search.affordable = 1
    assert not search.least_noise(line, 1.0)


@pytest.mark.parametrize(
    ("name", "verdict", "level", "held_up"),
    [
        ("label-inference-advantage", "fail", "warn", True),
        ("label-inference-advantage", "inconclusive", "warn", False),
        ("label-inference-advantage", "inconclusive", "error", True),
        ("claimed-epsilon", "inconclusive", "error", True),
        ("claimed-epsilon", "fail", "error", False),  # The noise is as declared: it is chance.
        ("shared-noise", "fail", "error", False),
        ("guessable-seed", "inconclusive", "error", False),  # Its audit is left out.
        ("identifiers", "fail", "error", False),
    ],
)
def test_what_speaks_against_a_release(name, verdict, level, held_up):
    check = Check(id=name, question="?", limit=1, observed=2, verdict=verdict, level=level)
    assert stops(check) == held_up


def test_the_grid_ascends():
    assert list(GRID) == sorted(set(GRID))


def test_what_can_be_learnt_is_held_against_the_commonest_label():
    made = partial(Estimate.estimated, "test_accuracy", "accuracy", unit="proportion", method="")
    (text,) = no_use(made(value=0.722), 0.74)
    assert "right in 74" in text
    assert not list(no_use(made(value=0.8), 0.74))
    assert not list(no_use(None, 0.74))


def test_waiting_is_over_at_the_deadline():
    column = SimpleNamespace(audited=None)
    late = Search([column], None, 0.95, -math.inf, None)
    assert late.measured((Point("rr", "epsilon", 1.0, 1),), -math.inf) is None
