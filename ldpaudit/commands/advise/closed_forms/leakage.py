"""Leakage of a mechanism by closed form: its channel against posteriors that were learnt once."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from scipy.stats import norm

from ldpaudit.audits.epsilon_proofs import INSIDER, INSIDER_SHARES
from ldpaudit.audits.power.insider import design_for, smallest_excess
from ldpaudit.commands.advise.closed_forms.limits import Limit, Limits, Measure
from ldpaudit.commands.advise.closed_forms.study import Rows, Study
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.intervals.bounded_mean import mean_lower, mean_upper
from ldpaudit.estimators.loss.instance_loss import mean_loss
from ldpaudit.mechanisms.analysis import privacy_of
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.release import FloatArray
from ldpaudit.result import Estimate, Kind

_CAREFUL: Final = 2.0
"""A candidate passes where its leakage plus so many standard errors is within the limit."""
_TITLES: Final[dict[Measure, str]] = {
    "advantage": "Labels guessed right beyond what the features tell",
    "accuracy": "Labels guessed right",
    "exceedance": "Share of people who lose too much",
}
_DEAR: Final = ("epsilon", "renyi", "advantage", "accuracy", "exceedance", "excess")
"""The measures, the cheapest first."""
_KNOWN = (
    "rows are independent",
    "the attacker knows other people's true labels, and the noise is as declared",
)
_SMOOTH = ("label probabilities change little within a neighbourhood",)


@dataclass(frozen=True)
class Held:
    """One limit, and what a candidate does about it on the rows that candidates are compared on.

    Attributes
    ----------
    limit : Limit
    value, most : float
        The leakage, and what is allowed.
    careful : float
        The value plus two standard errors where it is an average over rows.
    least : float
        The least that an audit may find: the value less two standard errors and, where a limit of
        level ``warn`` counts as broken only once that is shown, what the audit's interval needs.
    kind : {"exact", "estimated"}
    """

    limit: Limit
    value: float
    most: float
    careful: float
    kind: Kind
    least: float

    @property
    def open(self) -> bool:
        """Whether an audit may let it pass; where it is not within the limit, nobody knows yet."""
        return self.least <= self.most * (1 + 1e-9) + 1e-12

    @property
    def far(self) -> bool:
        """Whether no more than half of what is allowed is reached, chance allowed for."""
        return self.careful <= self.most / 2

    @property
    def passes(self) -> bool:
        """Whether it is within the limit, chance allowed for."""
        return self.careful <= self.most * (1 + 1e-9) + 1e-12

    @property
    def stretch(self) -> float:
        """How far beyond the limit it is: 1 at the limit."""
        return self.careful / self.most if self.most > 0 else math.inf


def _exactly(limit: Limit, value: float, most: float) -> Held:
    return Held(limit, value, most, value, "exact", value)


@dataclass(frozen=True, eq=False)
class Leakage:
    """A mechanism's leakage about one column, as far as closed forms go.

    Attributes
    ----------
    study : Study
    mechanism : Mechanism or None
        None: nothing is released of the label, so that the features alone speak.
    epsilon : float
        What the release costs in all, in nats; 0 for no mechanism.
    """

    study: Study
    mechanism: Mechanism | None
    epsilon: float

    @cached_property
    def channel(self) -> FloatArray:
        """P(released | true), float64 of shape (k, m)."""
        if self.mechanism is None:
            return np.ones((len(self.study.release.classes), 1))
        return self.study.channel(self.mechanism)

    def held(self, limits: Limits) -> Iterator[Held]:
        """Yield every limit of the policy that a closed form can say something about."""
        for limit in sorted(limits.limits, key=lambda one: _DEAR.index(one.measure)):
            if (held := self._held(limit, limits)) is not None:
                yield held

    def _held(self, limit: Limit, limits: Limits) -> Held | None:
        most = limit.most(self.epsilon)
        if limit.measure == "epsilon":
            return _exactly(limit, self.epsilon, most)
        if limit.measure == "excess":
            missed = self._missed(limits)
            return None if missed is None else _exactly(limit, missed, most)
        if limit.measure == "renyi":
            assert limit.at is not None
            value = self._renyi(limit.at(self.epsilon))
            return None if value is None else _exactly(limit, value, most)
        if limit.measure == "exceedance":
            assert limit.at is not None
            loss = limit.at(self.epsilon)
            shares = [self._exceeds(pair[0], loss) for pair in self.study.neighbors]
            share, people = max(shares), min(len(pair[0]) for pair in self.study.neighbors)
            chance = _CAREFUL * math.sqrt(share * (1 - share) / max(people, 1))
            return Held(limit, share, most, share + chance, "estimated", share - chance)
        if self.study.release.numeric is not None:
            return None  # Policies limit guesses of classes; numbers are nowhere limited so.
        values = self._gains(self.study.compared, limit.measure)
        chance = _CAREFUL * float(values.std()) / math.sqrt(len(values))
        value = float(values.mean())
        least = value - chance - self._needed(limit, limits)
        return Held(limit, value, most, value + chance, "estimated", least)

    def _needed(self, limit: Limit, limits: Limits) -> float:
        """Return how far beyond a limit guesses have to be until an audit of all rows shows it."""
        if limit.level != "warn":
            return 0.0
        rows = self.study.compared
        right, alone = rows.right(self.channel), rows.alone * (limit.measure == "advantage")
        square = float((right + alone - 2 * right * alone).mean())
        variance = square - float((right - alone).mean()) ** 2
        return float(norm.ppf(limits.confidence)) * math.sqrt(max(variance, 0) / self.study.rows)

    def _missed(self, limits: Limits) -> float | None:
        """Return the excess of ε that an audit of the whole table could miss, in nats."""
        if self.mechanism is None:
            return None
        k = len(self.study.release.classes)
        sizes = np.rint(
            np.bincount(self.study.truth, minlength=k) * self.study.rows / len(self.study.truth)
        ).astype(np.int64)
        alpha = (1 - limits.confidence) / limits.tests * INSIDER_SHARES[INSIDER]
        m = self.channel.shape[1]
        channel = Channel(self.channel, tuple(range(k)), tuple(range(m)))
        limit = channel.epsilon if self.mechanism.epsilon is None else self.mechanism.epsilon
        try:
            return smallest_excess(sizes, channel, limit, alpha, design_for(sizes, channel))
        except InsufficientDataError:
            return math.inf

    def _renyi(self, order: float) -> float | None:
        if self.mechanism is None:
            return None
        try:
            return privacy_of(self.mechanism).curves.rdp(order)
        except InputError:
            return None

    def _exceeds(self, posterior: FloatArray, loss: float) -> float:
        channel = None if self.mechanism is None else self.channel
        return float((mean_loss(posterior, self.study.prior, channel) >= loss - 1e-9).mean())

    def _gains(self, rows: Rows, measure: Measure) -> FloatArray:
        right = rows.right(self.channel)
        return right - rows.alone if measure == "advantage" else right

    @cached_property
    def guessed(self) -> float:
        """The share of labels that the attacker guesses right, on the rows compared."""
        return float(self.study.compared.right(self.channel).mean())

    def reported(self, measure: Measure, level: float, at: float | None = None) -> Estimate:
        """Return a measure on the rows that no choice has seen.

        Parameters
        ----------
        measure : {"advantage", "accuracy", "exceedance"}
        level : float
            The confidence of the interval.
        at : float or None
            The loss τ in nats, for "exceedance".
        """
        if measure == "exceedance":
            assert at is not None
            return self._reported_exceedance(at)
        rows = self.study.reported
        values, low = self._gains(rows, measure), -1.0 if measure == "advantage" else 0.0
        tail, value = (1 - level) / 2, float(values.mean())
        ends = [end(values, tail, low, 1.0) for end in (mean_lower, mean_upper)]
        return Estimate.interval(
            f"advice.{measure}",
            _TITLES[measure],
            value,
            (min(ends[0], value), max(ends[1], value)),
            level,
            section="leakage",
            unit="proportion",
            n=len(values),
            method="an attacker who knows other people's true labels guesses by a model of the "
            "features and the channel; each row's chance over the noise is exact; held-out rows, "
            "betting bounds",
            assumptions=_KNOWN,
        )

    def _reported_exceedance(self, at: float) -> Estimate:
        shares = [self._exceeds(pair[1], at) for pair in self.study.neighbors]
        return Estimate.estimated(
            "advice.exceedance",
            f"Share of people who lose {at:g} nats or more",
            max(shares),
            section="leakage",
            unit="proportion",
            n=min(len(pair[1]) for pair in self.study.neighbors),
            method="true labels of neighbours, in the metric that says more; people who were not "
            "asked when the noise was chosen",
            assumptions=_SMOOTH,
        )
