"""How the error probability of an audit is divided among all that may refute a claim.

An audit at confidence 1 − alpha may refute a true claim with probability alpha at most, however
many bounds and tests it computes. Each bound is valid at any level; what keeps the whole at alpha
is that each is held against the claim at its own share, and that the shares of what is united add
up to at most the whole (Bonferroni). From the policy's ``confidence`` down to one count:

1. ``alpha`` = 1 − confidence is for all checks of one level, ``error`` or ``warn``. Of several
   columns, strata or releases each has ``alpha`` divided by how many there are, their totals
   counted, too (:func:`ldpaudit.extras.several.judging.share_of`).
2. Checks share it by Holm's procedure or equally, or each has all of it where the policy's
   ``correction`` is "none" (:func:`ldpaudit.judging.verdict.corrected_levels`). The checks of
   seeds and of features that were kept have an error of their own, so small that it takes none.
3. The check of the claimed ε holds its proofs against the claim at :data:`PROOFS` where there are
   true labels (:data:`PROOFS_OF_NUMBERS` where remainders of numbers are among them). Without true
   labels the bound from the release alone, or from canaries, or from sums, is the only one and
   has all. Where a rule changed labels after the noise, everything shrinks to
   :data:`CHANGED_ROWS`. :func:`ldpaudit.result.stated.shares` gives the share by the bound's id;
   the power audit and the words on the page read the same shares.
4. Within a proof:

   - from true labels under a claim: what the claim leads one to count, and what some of the rows
     do, counted in the others, :data:`CLAIMED`;
   - in each of these: the method expected to be stronger and the other one, :data:`STRONGEST`, or
     for rows that were selected by their label the odds ratio alone, :data:`ODDS_RATIO`. An event
     in two groups spends its part on two rates, half each, or on the odds ratio and how often the
     event happens in the other group, :data:`EVENTS`;
   - within groups of rows: both halves of the rows, :data:`ONE_HALF` each; in each the chosen group
     and the fixed ones, :data:`GROUPS`, the fixed ones in equal parts; in each group as from true
     labels;
   - noise shared with another person's row: :data:`SHARED_NOISE`, to see that it is shared and to
     bound what it reveals;
   - from recorded reports: what the protocol reads of them, and all that they hold,
     :data:`REPORTS`, of the latter each half of the rows :data:`ONE_HALF`;
   - from numbers read off: equal shares for their remainders, for rare numbers that stand in the
     release, for each of the commonest, for rounded ones, and for those to which digits point; of
     all but the remainders :data:`ONE_HALF` for a row's own and for others;
   - from the release alone: both halves of the rows, :data:`ONE_HALF` each; groups by scores and
     balls, :data:`RELEASE_ALONE`; of scores large and small groups, :data:`SCORES`.
5. Ends of an interval, cells of a table, folds and attacks share equally what reaches them; there
   the code divides by two or by their number.

What other numbers are bounded by stands below, too: :data:`RENYI`, :data:`MEAN_LOSS`,
:data:`EXCEEDANCE`, :data:`DIRECTION`, :data:`GUESSES`; and two tests: :data:`WHITE_NOISE`,
:data:`RARE_CLASS`. An extra writes what it spends as a :class:`Split` of its own.
"""

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import Final, TypeVar

Part = TypeVar("Part", bound=Hashable)

_ROUNDING: Final = 1e-12


class Split(Mapping[Part, float]):
    """Shares of one error probability, by what they are spent on.

    What is united has at most the sum of its parts' error probabilities, so shares may add up to
    less than one, and never to more.

    Raises
    ------
    ValueError
        If a share is not above 0, or all of them are more than the whole.
    """

    def __init__(self, shares: Mapping[Part, float]) -> None:
        total = math.fsum(shares.values())
        if min(shares.values(), default=0.0) <= 0 or total > 1 + _ROUNDING:
            raise ValueError(f"Shares must be above 0 and at most 1 together, got {dict(shares)}.")
        self._shares = dict(shares)

    def __getitem__(self, part: Part) -> float:
        return self._shares[part]

    def __iter__(self) -> Iterator[Part]:
        return iter(self._shares)

    def __len__(self) -> int:
        return len(self._shares)

    def of(self, alpha: float, part: Part) -> float:
        """Return the error probability of a part, where the whole has ``alpha``."""
        return alpha * self._shares[part]


# The check of the claimed ε: what may refute the claim.

PROOFS: Final = Split(
    {"insider": 0.8, "subgroups": 0.1, "shared noise": 0.05, "feature-blind": 0.05}
)
"""With true labels; each share is fixed, whichever of the proofs there are."""
_LATTICE: Final = 0.02
PROOFS_OF_NUMBERS: Final = Split(
    {**PROOFS, "feature-blind": PROOFS["feature-blind"] - _LATTICE, "lattice": _LATTICE}
)
"""The same with the bound from remainders of numbers."""
CHANGED_ROWS: Final = 0.1
"""What is left where released labels decided which rows the bounds leave out."""

# Within a proof.

_BY_CLAIM: Final = 0.9
CLAIMED: Final = Split({"by the claim": _BY_CLAIM, "by other rows": 1 - _BY_CLAIM})
"""Labels and outputs that suit what is claimed, and those that a part of the rows chose: a channel
unlike the claimed one may show where the claim would not have one look."""
STRONGEST: Final = Split({"primary": 0.9, "other": 1 - 0.9})
"""The method expected to be stronger, and the other one."""
ODDS_RATIO: Final = 0.025
"""Of the other method's part, for the odds ratio that replaces both where rows were selected; where
that is the event's own, the event's part serves both."""
EVENTS: Final = (0.0, 0.02, 0.1, 0.5)
"""What may go to how often an event happens in the other group; the odds ratio has the rest. Which
is chosen before outcomes are seen. With 0 the odds ratio counts alone."""
GROUPS: Final = Split({"chosen": 0.7, "fixed": 1 - 0.7})
"""The group of rows that other rows chose, and all groups of fixed sizes."""
ONE_HALF: Final = 0.5
"""The tests on one half of the rows, for which the other half chose."""
SHARED_NOISE: Final = Split({"seen": 0.5, "bound": 0.5})
"""To see that noise is shared with another person's row, and to bound what it reveals."""
REPORTS: Final = Split({"protocol": 0.9, "learnt": 1 - 0.9})
"""Guesses from reports: by the protocol's likelihood ratio, and by a model of all entries."""
RELEASE_ALONE: Final = Split({"scores": 0.85, "balls": 1 - 0.85})
"""Groups by a model's scores and balls of feature space, where both are tested."""
SCORES: Final = Split({"large": 0.8, "small": 0.2})
"""Groups by scores of the size that was best on other rows, and of a smaller one."""

FEATURES: Final = Split({"curve": 0.98, "unchanged": 0.02})
"""ε of the noise on features: its bound, and values that the noise left exactly as they were."""

# Bounds of other numbers.

RENYI: Final = Split({"second mean": 0.6})
"""Of the two means whose ratio bounds a Rényi divergence; the first has what is left."""
MEAN_LOSS: Final = Split({"labels": 0.02})
"""The intervals of the labels' shares in E[ν]; the mean has what is left."""
EXCEEDANCE: Final = Split({"count": 0.5, "queries": 0.45, "labels": 0.05})
"""J(τ): the count of queries, their losses' bounds, and the labels' shares."""
_TOWARDS: Final = 0.8
DIRECTION: Final = Split(
    {"direction": _TOWARDS, "at least": (1 - _TOWARDS) / 2, "at most": (1 - _TOWARDS) / 2}
)
"""Which of two is right where exactly one is, and how often exactly one is, from both sides."""
GUESSES: Final = Split({"made": 0.1})
"""How often guesses are made, where δ > 0; how often they are right has what is left."""

# Tests.

WHITE_NOISE: Final = Split({"orders and groups": 0.7, "learner": 0.25, "row numbers": 1 - 0.95})
"""Noise that goes along with an order or a group of rows, that a model foresees, or that follows
the rows' numbers."""
RARE_CLASS: Final = Split({"unchanged": 0.8, "other outputs": 1 - 0.8})
"""Labels of a rare class released unchanged, and its other outputs in equal parts."""
