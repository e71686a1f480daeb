"""What estimators refuse, with one line that says why."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.instance_loss import PosteriorBox
from ldpaudit.estimators.intervals.binomial import log_odds_ratio_lower, shift_lower
from ldpaudit.estimators.intervals.bounded_mean import Folds, mean_lower, paired_interval
from ldpaudit.estimators.metric import fit_metric
from ldpaudit.estimators.neighbors import count_labels, neighbor_search
from ldpaudit.estimators.renyi import Scores, bounds_on, renyi_points, split_scores
from ldpaudit.extras.kinds.bags.posterior import bag_posterior
from ldpaudit.extras.kinds.mechanisms.label_proportions import LabelProportions
from ldpaudit.extras.kinds.synthetic.counts import count_memorisation, count_own_rows
from ldpaudit.release import FeatureTable

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((50, 2)).astype(np.float32)
ONE_NAN = np.where(np.arange(100).reshape(50, 2) == 15, np.float32(np.nan), ROWS)
CONSTANT = FeatureTable(np.ones((10, 2), np.float32), np.zeros((10, 1), np.int32), (1,), 3)
BAG = LabelProportions("bag", ("no", "yes"), "none", None, "sum").log_likelihood
BOX = PosteriorBox.from_counts(np.array([[5, 5]]), np.array([10]), 0.05)
ZEROS = Scores(np.zeros(9), np.zeros(9))


def counted(
    index: Any = ROWS, labels: Any = None, queries: Any = ROWS[:5], k: int = 5, n_labels: int = 2
) -> None:
    labels = np.zeros(len(index), np.int32) if labels is None else labels
    count_labels(neighbor_search(index, labels, k, n_labels, 5), queries)


CALLS: list[tuple[Any, str]] = [
    *(
        (partial(mean_lower, np.array(values), alpha, low, high), words)
        for values, alpha, low, high, words in (
            ([0.5, 2.0], 0.05, 0.0, 1.0, "lie between"),
            ([0.5, math.nan], 0.05, 0.0, 1.0, "lie between"),
            ([0.5], 0.0, 0.0, 1.0, "alpha"),
            ([0.5], 0.05, 1.0, 0.0, "in order"),
            ([0.5], 0.05, 0.0, math.inf, "finite"),
        )
    ),
    (lambda: shift_lower(np.array([0.5, np.nan]), 1, 0.05), r"\[0, 1\]"),
    (lambda: log_odds_ratio_lower(np.ones((2, 3), dtype=int), 0.05), "2 × 2"),
    (lambda: paired_interval(Folds((np.zeros(39), np.zeros(100))), 0.05), "40 rows"),
    (lambda: BOX.through(np.full((2, 2), 0.5)), "inverted"),
    (
        lambda: bag_posterior(np.full(5000, 0.5), np.zeros(5000, int), np.ones(1), BAG, 1),
        "at most 4096 rows",
    ),
    *(
        (partial(fit_metric, CONSTANT, name, rng=RNG), "distinguishes rows")  # type: ignore[arg-type]
        for name in ("l2", "raw")
    ),
    (lambda: counted(k=0), "'k'"),
    (lambda: counted(labels=np.ones(50, np.int32), n_labels=1), "codes"),
    (lambda: counted(labels=np.zeros(3, np.int32)), "label for each row"),
    (lambda: counted(index=ONE_NAN), "finite"),
    (lambda: counted(queries=ONE_NAN), "finite"),
    (lambda: counted(index=np.zeros((100, 0), np.float32)), "columns"),
    *((partial(renyi_points, ZEROS, o), "must ascend") for o in ([1.0], [2.0, 1.5], [math.inf])),
    (lambda: renyi_points(Scores(np.zeros(3), np.empty(0)), [2.0]), "rows on both sides"),
    (lambda: Scores(np.array([np.nan, 0.0, np.inf]), np.array([-np.inf])), "3 are not"),
    (lambda: bounds_on(ZEROS, ZEROS, (1.0,)), "above 1"),
    (lambda: split_scores(Scores(np.zeros(49), np.zeros(60)), rng=RNG), "at least 50"),
    (lambda: count_memorisation(ROWS, ROWS, ROWS[:, :1], RNG), "same coordinates"),
    (lambda: count_memorisation(ONE_NAN, ROWS, ROWS, RNG), "must be finite"),
    (lambda: count_memorisation(ROWS[:10], ROWS, ROWS, RNG), "at least 20"),
    (lambda: count_own_rows(ROWS, ROWS[:9], RNG), "one synthetic row"),
    (lambda: count_own_rows(ROWS[:39], ROWS[:39], RNG), "At least 40 rows"),
]


@pytest.mark.parametrize(("call", "words"), CALLS)
def test_it_is_refused(call: Any, words: str) -> None:
    with pytest.raises((InputError, InsufficientDataError), match=words):
        call()
