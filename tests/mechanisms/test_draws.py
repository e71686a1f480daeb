"""Draws against their probabilities: one table of what is drawn."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ldpaudit.extras.kinds.mechanisms.by_stratum import ByStratum
from ldpaudit.extras.kinds.mechanisms.label_proportions import LabelProportions
from ldpaudit.extras.kinds.mechanisms.with_features import STAGED, DoubleRR, ModelBasedRR
from ldpaudit.extras.several.joint import JointRR, RandomSampling
from ldpaudit.mechanisms import ExplicitChannel, RandomizedResponse
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import WeightTable
from ldpaudit.mechanisms.joint import IndependentColumns
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import DiscreteLaplace, DiscreteStaircase, Laplace, Staircase
from ldpaudit.mechanisms.rounding import Rounding

ABC, GRID = ("a", "b", "c"), LabelRange(2, 9, 1)
DOMAINS = (("a", "b"), ("c", "d", "e"))
Counted = tuple[Any, Any]
"""How often each outcome was drawn, and its probability, both of shape (rows, outcomes)."""


def counts_of(rows: Any, drawn: Any, shape: tuple[int, ...]) -> Any:
    counts = np.zeros(shape)
    np.add.at(counts, (rows, drawn), 1)
    return counts


def channel(mechanism: Any, rng: Any, n: int = 20_000) -> Counted:
    matrix = mechanism.channel.matrix
    labels = (np.arange(n) % len(matrix)).astype(np.int32)
    return counts_of(labels, mechanism.sample(labels, rng), matrix.shape), matrix


def table(rng: Any) -> Counted:
    matrix = np.random.default_rng(2).dirichlet(np.full(37, 0.3), size=5)
    rows = (np.arange(30_000) % 5).astype(np.int32)
    drawn = WeightTable.from_probabilities(matrix).draw(rows, rng)
    return counts_of(rows, drawn, matrix.shape), matrix


def model_based(rng: Any) -> Counted:
    mechanism, kinds = ModelBasedRR(ABC, 0.5), np.array([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]])
    labels, kind = np.tile(np.arange(3, dtype=np.int32), 20_000), np.repeat([0, 1], 30_000)
    drawn = mechanism.sample(labels, kinds[kind], rng)
    return counts_of(3 * kind + labels, drawn, (6, 3)), mechanism.channels(kinds).reshape(6, 3)


def staged(rng: Any) -> Counted:
    mechanism, kinds = STAGED(ABC, 1.2, 3), np.array([[0.6, 0.3, 0.1], [0.3, 0.3, 0.4], [0, 1, 0]])
    labels, kind = np.tile(np.arange(3, dtype=np.int32), 20_000), np.repeat([0, 1, 2], 20_000)
    drawn, matrices = mechanism.sample(labels, kinds[kind], rng), mechanism.channels(kinds)
    assert [Channel(one, ABC, ABC).epsilon > 1.2 + 1e-9 for one in matrices] == [False] * 3
    assert {np.round(Channel(one, ABC, ABC).epsilon, 9) for one in matrices} == {0.0, 1.2}
    likelihood = mechanism.row_likelihood(kinds, np.array([0, 2, 1]))
    assert likelihood == pytest.approx(matrices[np.arange(3), :, [0, 2, 1]])
    return counts_of(3 * kind + labels, drawn, (9, 3)), matrices.reshape(9, 3)


def strata(rng: Any) -> Counted:
    south = ExplicitChannel(Channel(np.array([[0.9, 0.1], [0.3, 0.7]]), ("q", "r"), ("q", "r")))
    mechanism = ByStratum((1, 2), (RandomizedResponse(("q", "r"), 0.4), south))
    labels, places = (np.arange(16_000) // step % 2 for step in (1, 2))
    drawn = mechanism.sample(labels.astype(np.int32), places.astype(np.int32), rng)
    return counts_of(2 * places + labels, drawn, (4, 2)), mechanism.matrices.reshape(4, 2)


def double(rng: Any) -> Counted:
    """Whether the label is the true one, by whose features are released; −1 are the true ones."""
    mechanism, synthetic = DoubleRR(ABC, 0.6), np.array([0, 0, 1, 2, 2, 2], np.int32)
    labels = (np.arange(20_000) % 3).astype(np.int32)
    drawn = mechanism.sample(labels, synthetic, rng)
    rows = np.array([0.4, *0.6 * np.array([1 / 6, 1 / 6, 1 / 3, 1 / 9, 1 / 9, 1 / 9])])
    both = np.outer(rows, [0.4, 0.6]).reshape(1, -1)
    outcome = 2 * (drawn.synthetic_rows + 1) + (drawn.labels == labels)
    return np.bincount(outcome, minlength=14)[None, :], both


def vectors(mechanism: Any, rng: Any) -> Counted:
    truth, n = (1, 2), 15_000
    drawn = mechanism.sample(np.tile(truth, (n, 1)).astype(np.int32), rng)
    codes = np.ravel_multi_index(tuple(drawn.T), (2, 3))
    row = np.ravel_multi_index(truth, (2, 3))
    return np.bincount(codes, minlength=6)[None, :], mechanism.channel().matrix[[row]]


def noise(family: Any, epsilon: float, steps: int, rng: Any) -> Counted:
    law = family(LabelRange(0, steps, 1), epsilon).law
    drawn = law.draw(30_000, rng)
    reach = int(np.abs(drawn).max()) + 1
    places = np.arange(-reach, reach + 1)
    return np.bincount(drawn + reach, minlength=len(places))[None, :], law.pmf(places)[None, :]


def bins(family: Any, clipped: bool, rng: Any) -> Counted:
    mechanism, edges = family(GRID, 1.5, clipped=clipped), [-20.0, 1.5, 2.001, 4.2, 8.9, 8.999, 30]
    released = mechanism.release(np.repeat(GRID.values, 4_000), rng)
    drawn = np.searchsorted(edges, released, side="left")
    return counts_of(np.repeat(np.arange(8), 4_000), drawn, (8, 8)), mechanism.binned(edges).matrix


def bags(kind: str, rng: Any) -> Counted:
    members, labels = np.repeat(np.arange(5000), 4), np.arange(20_000, dtype=np.int32) % 3 // 2
    mechanism = LabelProportions("bag", ("no", "yes"), kind, None if kind == "none" else 1.0)
    released = mechanism.release(labels, members, rng)
    assert (released.reshape(-1, 4) == released[::4, None]).all()
    edges = np.array([-1.5, -0.5, 0.5, 1.5])
    drawn = np.searchsorted(edges, 4 * released[::4] - labels.reshape(-1, 4).sum(axis=1))
    upto = np.concatenate([[0.0], mechanism.noise_cdf(edges), [1.0]])
    return np.bincount(drawn, minlength=5)[None, :], np.diff(upto)[None, :]


def rounding(rng: Any) -> Counted:
    labels = np.array([0.0, 0.3, 1.0, 2.5, 9.9, 10.0])
    rule = Rounding((0, 1, 3, 10))
    drawn = rule.sample(np.repeat(labels, 5_000), rng)
    return counts_of(np.repeat(np.arange(6), 5_000), drawn, (6, 4)), rule.mean(np.eye(4), labels)


RESPONSES = [RandomizedResponse.from_epsilon(tuple(range(k)), e) for k, e in ((2, 1), (53, 4))]
COLUMNS = tuple(RandomizedResponse(domain, 0.5) for domain in DOMAINS)
JOINT = [
    IndependentColumns(COLUMNS),
    *(family(DOMAINS, e) for family in (JointRR, RandomSampling) for e in (0.1, 4.0)),
]
CASES: dict[str, Callable[[Any], Counted]] = {
    "a table": table,
    "model-based-rr": model_based,
    "by-stratum": strata,
    "multi-stage-rr": staged,
    "double-rr": double,
    "rounding": rounding,
    "no information": partial(channel, RandomizedResponse(tuple(range(4)), 1.0)),
    **{f"rr on {len(one.classes)}": partial(channel, one) for one in RESPONSES},
    **{f"{one.name} {one.epsilon:.2g}": partial(vectors, one) for one in JOINT},
    **{f"bags with {kind} noise": partial(bags, kind) for kind in ("none", "laplace", "geometric")},
    **{
        f"{family.traits.name} {epsilon} {steps}": partial(noise, family, epsilon, steps)
        for family in (DiscreteLaplace, DiscreteStaircase)
        for epsilon, steps in ((0.05, 3), (1.0, 52), (6.0, 5))
    },
    **{
        f"{family.traits.name} in bins, {clipped}": partial(bins, family, clipped)
        for family in (Laplace, Staircase, DiscreteLaplace, DiscreteStaircase)
        for clipped in (False, True)
    },
}


SYSTEM = ("a table", "double-rr", "rounding", "rr on 53", "rs-fd 0.19", "discrete-laplace 1.0 52")


@pytest.mark.parametrize(
    ("name", "source"),
    [*((name, "generator") for name in CASES), *((name, "system") for name in SYSTEM)],
)
def test_draws_follow_their_probabilities(name: str, source: str) -> None:
    counts, probabilities = CASES[name](np.random.default_rng(4) if source == "generator" else None)
    expected = probabilities * counts.sum(axis=1, keepdims=True)
    assert counts[probabilities == 0].sum() == 0
    common = expected >= 10
    statistic = ((counts - expected)[common] ** 2 / expected[common]).sum()
    # A false alarm has probability 1e-9, of 50 tests; what is rare is checked by its total.
    assert stats.chi2.sf(statistic, common.sum()) > 1e-9
    rare = expected[~common].sum()
    assert abs(counts[~common].sum() - rare) <= 7 * np.sqrt(rare) + 30


@pytest.mark.validate
@pytest.mark.parametrize(("k", "epsilon"), [(2, 1.0), (53, 2.0)])
def test_frequencies_of_a_hundred_million_draws(k: int, epsilon: float) -> None:
    mechanism = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon)
    parts = [channel(mechanism, None, 10_000_000)[0] for _ in range(10)]
    counts: Any = np.sum(parts, axis=0)
    expected = mechanism.channel.matrix * counts.sum(axis=1, keepdims=True)
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, k * (k - 1)) > 1e-9
