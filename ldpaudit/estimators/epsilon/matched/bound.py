"""The strongest of several bounds of ε from rows with equal features, corrected for the choice."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.matched.rows import MatchedCounts

_ACCURACY_SHARE: Final = 0.5
_DESIGNED_SHARE: Final = 0.75


@dataclass(frozen=True)
class MatchedTest:
    """One of the bounds among which the strongest is taken.

    Attributes
    ----------
    counts : MatchedCounts
    method : {"accuracy", "two-sided"}
    share : float
        Of the whole error probability.
    """

    counts: MatchedCounts
    method: Literal["accuracy", "two-sided"]
    share: float

    def bound(self, alpha: float) -> EpsilonBound:
        """Bound ε at this test's share of alpha."""
        if self.method == "accuracy":
            return self.counts.accuracy(self.share * alpha)
        return self.counts.two_sided(self.share * alpha)


def matched_tests(
    counts: Sequence[MatchedCounts], designed: MatchedCounts | None = None
) -> list[MatchedTest]:
    """Return the bounds that are taken, with their shares, independent of the counts.

    Half of alpha goes to the accuracy of the one-to-one matching, the rest in equal parts to the
    two-sided bound of each matching. A designed matching gets three quarters of alpha first.
    """
    left = 1.0 if designed is None else 1 - _DESIGNED_SHARE
    tests = [] if designed is None else [MatchedTest(designed, "two-sided", _DESIGNED_SHARE)]
    share = (1 - _ACCURACY_SHARE) * left / max(len(counts), 1)
    tests += [MatchedTest(c, "two-sided", share) for c in counts if c.cases]
    tests += [
        MatchedTest(c, "accuracy", _ACCURACY_SHARE * left)
        for c in counts
        if c.cases and c.ratio == 1
    ]
    return tests


def matched_bound(
    counts: Sequence[MatchedCounts], alpha: float, designed: MatchedCounts | None = None
) -> EpsilonBound:
    """Return the strongest bound of several matchings at level 1 − alpha, corrected.

    Shared out as by :func:`matched_tests`.
    """
    tests = matched_tests(counts, designed)
    if not tests:
        return EpsilonBound(0.0, alpha, 0, "matched")
    best = max((test.bound(alpha) for test in tests), key=lambda bound: bound.epsilon)
    return EpsilonBound(best.epsilon, alpha, best.n, best.method)
