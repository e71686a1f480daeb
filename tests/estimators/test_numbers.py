"""Single numbers of estimators by hand: what is found, and what it must be."""

import hashlib
import math
import zlib
from typing import Any

import numpy as np
import pytest
from estimators.epsilon.test_rare import ASYMMETRIC
from estimators.loss.test_exceedance import BUDGET
from estimators.worlds import randomized_response
from extras.several.person.worlds import response
from scipy.stats import binom, binomtest
from worlds import feature_table

from ldpaudit.estimators import advantage
from ldpaudit.estimators.assumptions import clusters
from ldpaudit.estimators.assumptions.agreement import agreement_p_value
from ldpaudit.estimators.assumptions.learner import label_sides
from ldpaudit.estimators.epsilon.bounds import accuracy_epsilon
from ldpaudit.estimators.epsilon.consistency import rare_classes, usual_outputs
from ldpaudit.estimators.epsilon.events import EventPlan, odds_ratio_plan
from ldpaudit.estimators.epsilon.guesses import GuessCounts, detectable_epsilon, epsilon_lower
from ldpaudit.estimators.instance_loss import exceedance, expected_exceedance, loss_grid
from ldpaudit.estimators.intervals.binomial import (
    clopper_pearson_lower,
    clopper_pearson_upper,
    shift_lower,
    shift_upper,
    trials_lower,
)
from ldpaudit.estimators.intervals.bounded_mean import mean_lower, mean_upper
from ldpaudit.estimators.intervals.ranking import auc, auc_interval, auc_lower, auc_upper
from ldpaudit.estimators.neighbors import default_neighbors
from ldpaudit.estimators.row_order import strongest_agreement
from ldpaudit.estimators.seeds import checksums
from ldpaudit.estimators.telling import Told, label_weights, told
from ldpaudit.extras.kinds.observational.matched import match, possible_cases
from ldpaudit.extras.kinds.synthetic.counts import PairedSuccesses, exact_copies
from ldpaudit.extras.probe.black_box.work import delta_lower
from ldpaudit.extras.several.person.estimators import coded_fresh, sum_lower
from ldpaudit.extras.several.person.noise_tests import (
    agreement_share,
    kinds_of,
    largest_agreement,
    remembered_share_lower,
)


def end(count: int, n: int, alpha: float, side: str = "low") -> float:
    """Return Clopper–Pearson's lower or upper end at one-sided error ``alpha``."""
    return float(getattr(binomtest(count, n).proportion_ci(1 - 2 * alpha, "exact"), side))


def approx(value: Any, off: float = 1e-9) -> Any:
    return pytest.approx(value, rel=1e-6, abs=off)


def codes(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def of_guesses(sides: int) -> list[tuple[str, Any, Any]]:
    counts, level = GuessCounts(1_000, 500, 100, sides), end(500, 600, 0.05)
    strict, share = end(500, 600, 0.045), 0.01 * sides / (2 * end(600, 1_000, 0.005))
    often = end(100, 1_000, 0.025, "high")
    delta = (end(500, 1_000, 0.025) - math.exp(0.7) * often) * 2 / sides
    bound = math.log((strict - share) / (1 - strict))
    return [
        ("ε", epsilon_lower(counts, 0.05).epsilon, approx(math.log(level / (1 - level)))),
        ("ε at δ", epsilon_lower(counts, 0.05, 0.01).epsilon, approx(bound)),
        ("δ", delta_lower(counts, 0.7, 0.05), approx(delta)),
        ("δ beyond all floats", delta_lower(counts, 800.0, 0.05), 0.0),
        ("no δ", delta_lower(counts, 9.0, 0.05), 0.0),
    ]


def of_ranks(few: int, many: int) -> tuple[str, Any, Any]:
    rng = np.random.default_rng(2)
    sides = rng.normal(1, 1, few), rng.normal(0, 1, many)
    exact = tuple(end(auc(*sides), few, 0.05) for end in (auc_lower, auc_upper))
    return "AUC of few rows", auc_interval(*sides, 0.1), exact


def root(alpha: float) -> float:
    return 1.0 - 0.05 * math.sqrt(-2 * math.log(alpha))


EVENT = EventPlan(codes(0, 1, 1), codes(0, 1), 0.5)
EVENTS = np.array([[700, 300], [100, 300], [100, 500]])
LOW, HIGH = clopper_pearson_lower(800, 1000, 0.025), clopper_pearson_upper(300, 1000, 0.025)
ODDS = odds_ratio_plan(np.array([10, 300, 200]), np.full((3, 3), 0.2) + 0.4 * np.eye(3))
ODDS_COUNTS = np.array([[5, 3, 2], [60, 180, 60], [40, 40, 120]])
GROUPS, CASES = np.array([0] * 6 + [2] * 4 + [3] * 3), codes(0, 0, 0, 1, 1, 2, 1, 1, 1, 0, 2, 2, 2)
RR = randomized_response(2, 1.0)
MOST, EVEN = 0.5 + 0.5 * math.tanh(0.5) ** 2, np.full(50, 0.5)
LOSSES = np.repeat([0.25, 1.0, 3.0], [500, 300, 200])
EXCEEDED = exceedance(LOSSES, LOSSES - 0.5, BUDGET, np.array([0.0, 1.0, 2.0, 3.5]))
WEIGHTED = expected_exceedance(
    np.tile([0.0, 2.0], (400, 1)), np.tile([0.75, 0.25], (400, 1)), np.array([-1.0, 1.0, 3.0])
)
INFINITE = np.full(100, np.inf)
SHARES = [(a - 0.6) / 0.4 for a in (0.8, end(160, 200, 0.05), end(160, 200, 0.05, "high"))]
RELEASED = np.random.default_rng(0).permutation(np.tile([0, 1], 500)).astype(np.int32)
INVERSE = np.linalg.inv(np.array([[0.7, 0.3], [0.3, 0.7]]))
SIX, ROWS = codes(0, 0, 1, 1, 2, 0), np.arange(6)
LARGE = clusters.without_large(np.repeat([0, 1, 2], [30, 31, 2]))
FRESH = coded_fresh([response(2, 1.0)] * 3, np.array([[0, 0, 1], [1, 0, 0], [1, 1, 1]], np.int32))
MADE = dict(checksums(["17", "Ångström"]))
DIGEST = hashlib.md5("Ångström".encode()).hexdigest()
RECORDS = np.array([[1, np.nan], [0, 2]], np.float32)
COPIES = np.array([[1, np.nan], [-0.0, 2], [1, 2]], np.float32)
LIMIT = math.log(0.7 / 0.3)
NUMBERS: list[tuple[str, Any, Any]] = [
    *(row for sides in (1, 2) for row in of_guesses(sides)),
    *(
        ("nothing", epsilon_lower(GuessCounts(1000, *counts), 0.05, delta).epsilon, 0)
        for counts, delta in (((0, 0), 1e-3), ((50, 50), 1e-3), ((10, 400), 1e-3), ((50, 0), 0.999))
    ),
    # 0.7^n is below 0.05 from n = 9 on.
    *(
        ("few", math.isfinite(detectable_epsilon(GuessCounts(*n), claim, 0.05, delta)), finite)
        for n, claim, delta, finite in (
            ((100, 0, 0), 1.0, 0.0, False),
            ((100, 4, 2), 1.0, 0.5, False),
            ((90, 8, 0), LIMIT, 0.0, False),
            ((90, 9, 0), LIMIT, 0.0, True),
        )
    ),
    *(
        ("as a constant guess", accuracy_epsilon(right, np.array(sizes), 0.05), 0.0)
        for right, sizes in ((900, [900, 100]), (500, [500, 500]), (0, [0, 0]))
    ),
    (
        "an event",
        EVENT.epsilon(EVENT.table(EVENTS), 0.05),
        approx(max(math.log(LOW / HIGH), math.log((1 - HIGH) / (1 - LOW)))),
    ),
    # Other labels and outputs are left out, whatever share of each output's rows is kept.
    ("odds", (ODDS.groups.tolist(), ODDS.guess.tolist()), ([-1, 1, 0], [-1, 1, 0])),
    ("odds", ODDS.table(ODDS_COUNTS).tolist(), [[120, 40], [60, 180]]),
    *(
        ("odds", ODDS.epsilon(ODDS.table(ODDS_COUNTS * kept), 0.05), approx(math.log(3), 0.05))
        for kept in (100, np.array([100, 100, 25]))
    ),
    (
        "cases",
        np.stack(possible_cases(GROUPS, CASES, 3, 2), axis=1).tolist(),
        [[0, 0, 1], [0, 1, 2], [0, 2, 1], [2, 0, 1], [2, 1, 0], [3, 2, 0]],
    ),
    (
        "targets",
        match(GROUPS, CASES, 3, 2, np.random.default_rng(0)).targets.tolist(),
        [1, -1, 0, -1],
    ),
    (
        "usual outputs",
        usual_outputs(ASYMMETRIC, ("a", "b", "c", "d"), ("c", "b", "z")).tolist(),
        [0, 1, 0, 2],
    ),
    ("large", rare_classes(np.array([[400, 100], [0, 51]]), RR, 1.0, np.arange(2)), None),
    ("one success", (trials_lower(1, 20, 0.05), trials_lower(0, 0, 0.05)), (approx(0.0025), 0)),
    ("shift", (shift_lower(EVEN, 10, 0.05), shift_lower(np.ones(50), 50, 0.05)), (0.0, 0.0)),
    ("shift", (shift_lower(np.zeros(50), 1, 0.05), shift_upper(EVEN, 50, 0.05)), (math.inf,) * 2),
    ("means of nothing", mean_lower(np.zeros(0), 0.05, -2, 3), -2),
    ("means of nothing", mean_upper(np.zeros(0), 0.05, -2, 3), 3),
    ("means", mean_lower(np.full(100, 4.0), 0.05, 4, 4), 4),
    ("AUC", auc(np.array([0, 1, 2]), np.array([1, 1, 0])), approx((0.5 + 2 + 3) / 9)),
    ("AUC", auc(np.zeros(0), np.ones(3)), 0.5),
    *(of_ranks(*sizes) for sizes in ((6, 6), (12, 90), (0, 6))),
    # 1 + e^{ε/2} equally likely labels, a whole number for ε = 2 log 4.
    *(
        (
            "ceiling",
            advantage.randomized_response_advantage(np.full((1, k), 1 / k), e)[0],
            approx(advantage.advantage_ceiling(e, k)),
        )
        for k, e in ((2, 0.3), (2, 5.0), (5, 2 * math.log(4)))
    ),
    ("budget", BUDGET.count + BUDGET.markov + BUDGET.prior, approx(0.01)),
    ("exceeded", EXCEEDED.value, approx([1.0, 0.5, 0.2, 0.0])),
    (
        "exceeded",
        EXCEEDED.low,
        approx(np.maximum(clopper_pearson_lower([500, 200, 200, 0], 1000, 0.005) - 0.001, 0)),
    ),
    ("expected", (WEIGHTED.value, WEIGHTED.low), (approx([1.0, 0.25, 0.0]), None)),
    ("∞", set(exceedance(INFINITE, INFINITE, BUDGET, loss_grid(INFINITE)).value), {1.0}),
    *(
        (
            "grid",
            set(np.arange(-1.5, 25.5, 0.5)) <= set(loss_grid(np.linspace(-1.3, spread, 50))),
            True,
        )
        for spread in (0.3, 31.0)
    ),
    # Agreement is s + (1 − s)·expected; Clopper–Pearson's ends at α/2 each.
    ("remembered", agreement_share(160, 200, 0.6, 0.1), approx(SHARES)),
    ("remembered", agreement_share(90, 200, 0.6, 0.1), (0.0, 0.0, 0.0)),
    ("remembered", agreement_share(200, 200, 0.6, 0.1)[2], 1.0),
    ("agreement", largest_agreement(RR, RR), approx(MOST)),
    (
        "remembered",
        remembered_share_lower(95, 100, RR, RR, 0.05),
        approx((end(95, 100, 0.05) - MOST) / (1 - MOST)),
    ),
    ("remembered", remembered_share_lower(10, 100, RR, RR, 0.05), 0.0),
    ("agreement", agreement_p_value(SIX, ROWS[::2], ROWS[1::2], 0.4), approx(binom.sf(1, 3, 0.4))),
    ("agreement", agreement_p_value(SIX, ROWS[:0], ROWS[:0], 0.4), 1.0),
    (
        "kinds",
        kinds_of(np.array([[0, 1]] * 3 + [[1, 1]]), codes(0, 0, 1, 1)).tolist(),
        [0, 0, 1, 2],
    ),
    # Answers with one likelihood ratio have one code; too many ratios are counted as they are.
    ("fresh", (FRESH[1], FRESH[0][0] == FRESH[0][1], FRESH[0][1] == FRESH[0][2]), (4, True, False)),
    (
        "fresh",
        coded_fresh([response(60, 1.0)] * 6, np.zeros((50, 6), np.int32))[1:],
        (120, None),
    ),
    ("sum", sum_lower([root], 0.05), root(0.05)),
    # One that fails at large levels is never asked there.
    ("sum", sum_lower([lambda alpha: float(alpha <= 0.25)] * 2, 0.05), 2.0),
    *(
        ("risk", PairedSuccesses(10, *counts).value, value)
        for counts, value in (((10, 0, 0), 0), ((0, 10, 0), 1), ((0, 0, 0), 0))
    ),
    ("risk", PairedSuccesses(10, 4, 3, 1).counts, (7, 5)),
    ("copies", exact_copies(COPIES, RECORDS).tolist(), [True, True, False]),
    # Less than two labels with ten rows tell nothing; through an inverse channel weights exceed one
    # where the column is the released label.
    *(
        ("told", told(labels, label_weights(labels, 2)), Told(*expected))
        for labels, expected in (
            (codes(*[0] * 30, *[1] * 9), (0.0, 0.0, 39)),
            (codes(*[0] * 30, *[1] * 10), (1.0, 0.0, 0)),
        )
    ),
    ("told", told(RELEASED, INVERSE[RELEASED]), Told(0.0, 0.0, 1_000, derived=True)),
    ("order", strongest_agreement(np.zeros(5, np.int32)), None),
    ("order", getattr(strongest_agreement(np.zeros(100, np.int32)), "excess", None), 0.0),
    ("clusters", (LARGE.min(), LARGE.max(), np.bincount(LARGE).max()), (0, 32, 30)),
    ("clusters", clusters.equal_rows(feature_table(np.zeros((3, 0)))).tolist(), [0, 0, 0]),
    *(
        (
            "sides",
            [
                side.tolist()
                for side in label_sides(codes(0, 4, 4, 1), codes(0, 1, 0, 1), same_labels=same)
            ],
            [first, [0, 1, 0, 1]],
        )
        for same, first in ((True, [0, 0, 0, 1]), (False, [1, 0, 0, 1]))
    ),
    *(
        ("neighbours", default_neighbors(n, dimensions), k)
        for n, dimensions, k in ((5, None, 5), (100, 2, 20), (10_000, 18, 400), (10**6, 1, 31_623))
    ),
    ("checksums", len(MADE), 19),
    ("MD5", MADE["MD5 of column {} modulo 1,000"][1], int(DIGEST, 16) % 1000 / 1000),
    ("MD5", MADE["MD5 of column {}"][1], approx(int(DIGEST[:8], 16) / 2**32, 1e-9)),
    ("CRC32", MADE["CRC32 of column {} modulo 100"][0], zlib.crc32(b"17") % 100 / 100),
]


@pytest.mark.parametrize(("name", "found", "expected"), NUMBERS)
def test_a_number_is_that_of_its_definition(name: str, found: Any, expected: Any) -> None:
    assert found == expected, name
