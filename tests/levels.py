"""How often something goes wrong, and how many draws it takes to know."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

FALSE_ALARM = 1e-5
LOOKS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)


def check_level(
    missed: Callable[[int], Any],
    draws: int,
    alpha: float | Sequence[float],
    false_alarm: float = FALSE_ALARM,
) -> int:
    """Check that something goes wrong with probability ``alpha`` at most; return the draws made.

    ``missed`` takes the number of a draw and says whether it went wrong, or for several things
    whether each did, where there may be an ``alpha`` for each. It ends before all draws where so
    few went wrong that the rate which all draws would find in 99 of 100 cases is excluded, with
    an error of 1e-5. A false alarm has at most the probability ``false_alarm``.
    """
    levels = np.atleast_1d(alpha)
    worst = np.array([found_surely(draws, float(level), false_alarm) for level in levels])
    went_wrong: Any = np.zeros(1, dtype=int)
    done = 0
    for look in LOOKS:
        now = round(draws * look)
        for number in range(done, now):
            went_wrong = went_wrong + np.atleast_1d(missed(number)).astype(int)
        done = now
        most = np.array([most_by_chance(done, float(level), false_alarm) for level in levels])
        assert np.all(went_wrong <= most), f"{went_wrong.tolist()} of {done} at {levels.tolist()}"
        if np.all(binom.cdf(went_wrong, done, worst) < FALSE_ALARM):
            break
    return done


def most_by_chance(draws: int, alpha: float, false_alarm: float = FALSE_ALARM) -> int:
    """Return how many of the draws may go wrong at one look."""
    return int(binom.isf(false_alarm / len(LOOKS), draws, alpha))


def found_surely(draws: int, alpha: float, false_alarm: float = FALSE_ALARM) -> float:
    """Return the rate of going wrong that so many draws find in 99 of 100 cases."""
    most = most_by_chance(draws, alpha, false_alarm)
    return float(brentq(lambda rate: binom.sf(most, draws, rate) - 0.99, alpha, 1 - 1e-12))
