"""The kinds of certified evidence about a channel that may use the features, and their power."""

# Rows with equal features; canaries, whose labels the auditor drew; and the public model that the
# claim says labels were drawn from. For the power the supposed violation is the claimed model-based
# randomized response with less noise, the same model and the same floor. How improbable the model
# finds the released labels of the rows at hand is taken from their counts, at the less informative
# end of a confidence interval, and without believing the claim's λ.

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from ldpaudit.audits.interface import Part, remembered
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.audits.public_model import model_readings
from ldpaudit.doors import (
    AuditContext,
    Estimate,
    FloatArray,
    IndexArray,
    InputError,
    InsufficientDataError,
    IntArray,
    Note,
    PublicModelLabel,
    Release,
    shift_lower,
)
from ldpaudit.error_budget import Split
from ldpaudit.estimators.epsilon.bounds import EpsilonBound, GroupTest, Strongest
from ldpaudit.estimators.epsilon.power import WANTED_POWER, is_found, smallest_excess
from ldpaudit.estimators.intervals.binomial import ShiftedCoins, trials_lower, trials_upper
from ldpaudit.extras.kinds.observational.matched import (
    RATIOS,
    Matching,
    ModelBasedFamily,
    designed_matching,
    guessed_chance,
    match,
    matched_tests,
    target_chance,
)
from ldpaudit.models.counts import hash_rows
from ldpaudit.release import BoolArray, label_table
from ldpaudit.result import Bound
from ldpaudit.result.stated import EXCESS, EXCESS_TITLE

_FEWEST_MATCHES: Final = 20
_SAME_DIGITS: Final = 6
_FEWEST_CANARIES: Final = 20
_FEWEST_WRONG: Final = 5.0
_GUESSES: Final = Split({"promising": 0.75, "all": 1 - 0.75})
"""Of canaries: the most promising guesses, and all of them."""
_QUANTILE: Final = 2.2  # Normal deviations that the guesses lose to their confidence bound, about.
# Canary labels less probable than this do not have the stated probabilities.
_INCREDIBLE: Final = 1e-9
_PARTS: Final = 4
_DOUBT: Final = 0.001


@dataclass(frozen=True, eq=False)
class CanaryGuesses:
    """Guesses of labels that the auditor drew."""

    priors: FloatArray
    """Float64 (c,): the probability with which each guessed label was drawn."""
    correct: int
    """How many of the guesses are the label that was drawn."""
    share: float = 1.0
    """Of the error probability."""
    chances: FloatArray | None = None
    """Float64 (c,): P̂(guessed label | x), with which the mechanism is stated to draw."""

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the lower bound of ε at this test's share of alpha."""
        epsilon = shift_lower(self.priors, self.correct, alpha * self.share)
        return EpsilonBound(epsilon, alpha, len(self.priors), "canaries")

    def fewest(self, limit: float, alpha: float) -> int:
        """Return how many guesses must be right for the bound to exceed a limit."""
        level, counts = alpha * self.share, range(len(self.priors) + 1)
        return bisect_left(
            counts, True, key=lambda count: shift_lower(self.priors, count, level) > limit
        )


@dataclass(frozen=True)
class ModelEvidence:
    """How many released labels differ from the true ones, and how many would if all were drawn."""

    rows: int
    """How many."""
    changed: int
    """Rows whose released label is not the true one."""
    drawn_otherwise: float
    """The mean over rows of the model's probability of another label than the true one, floor
    included; above 0, and the smallest where the model can be read in several ways."""
    floor: float
    """The claimed floor f > 0."""
    drawn_at_most: float = 0.0
    """The same, the largest of the ways that the labels fit: what changes are simulated with."""

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the bound at a one-sided error probability, in nats."""
        return EpsilonBound(float(self.epsilon(self.changed, alpha)), alpha, self.rows, "model")

    def epsilon(self, changed: npt.ArrayLike, alpha: float) -> FloatArray:
        """Return the bounds for numbers of changed labels."""
        # Changes are independent, row i's with probability λ(1 − P̂(y_i | x_i)): the upper bound of
        # their mean (Hoeffding 1956, Theorem 5) divided by the mean at λ = 1 is one of λ.
        share = trials_upper(changed, self.rows, alpha)
        noise = np.minimum(share / self.drawn_otherwise, 1.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log1p((1 - noise) / (noise * self.floor)))


@dataclass(frozen=True, eq=False)
class Proof:
    """One kind of evidence."""

    name: str
    title: str
    words: str
    """How ε is bounded, with ``{method}`` for the method of the strongest test."""
    assumption: str
    """What it assumes besides independent rows."""
    tests: Sequence[GroupTest | CanaryGuesses | ModelEvidence]
    """Each with its share of the error probability."""
    spread: float = 0.0
    """Of canaries: the probability that two labels drawn for one canary differ, on average."""

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the strongest bound at a one-sided error probability."""
        return Strongest(self.tests).bound(alpha)

    def how(self, bound: EpsilonBound) -> str:
        """Return in words how a bound came about."""
        several = f"; corrected for {len(self.tests)} bounds" if len(self.tests) > 1 else ""
        return self.words.format(method=bound.method) + several


@remembered("observational.evidence")
def evidence_at_hand(context: AuditContext) -> list[Proof]:
    """Return the evidence that there is; its kinds share the error probability equally."""
    # Raise InputError if there are too few canaries, or their labels cannot have been drawn as
    # declared.
    return [found for found in (_matched(context), _canaries(context), _model(context)) if found]


def _matched(context: AuditContext) -> Proof | None:
    """Return the counts among rows with equal features, None with fewer than 20 matches."""
    release, rng = context.release, context.rng("observational", "matching")
    table, rows = guessed_events(context)
    cells = _alike(release, rows)
    truth, released = context.truth[rows], release.released[rows]
    k, claim = len(release.classes), model_claim(context)
    drawn = _drawn_with(context, "truth")
    means = None
    if drawn is not None:
        sums = [np.bincount(cells, weights=column) for column in drawn[rows].T]
        means = np.stack(sums, axis=1) / np.bincount(cells)[:, None]

    def count(matching: Matching) -> tuple[IndexArray, float | None]:
        event, chance = table[matching.targets[cells], released], None
        if means is not None and release.public_posterior is not None and len(matching.cases):
            groups = cells[matching.cases]
            chance = float(means[groups, matching.targets[groups]].mean())
        return matching.table(event), chance

    counts = [count(match(cells, truth, k, ratio, rng)) for ratio in RATIOS]
    if counts[0][0][1].sum() < _FEWEST_MATCHES:
        return None
    designed = None
    if means is not None and claim is not None:
        rng = context.rng("observational", "design")
        chosen = designed_matching(cells, truth, means, claim.noise, rng)
        designed = None if chosen is None else count(chosen)
    return Proof(
        "cells",
        "equal rows",
        "rows with equal features and other true labels, {method} bound",
        "rows with the same features went through the same channel: the mechanism used no feature "
        "besides those audited",
        matched_tests(counts, designed),
    )


def _alike(release: Release, rows: IndexArray) -> IndexArray:
    """Return the group of each row: equal features and, where it is known, equal P̂(y | x)."""
    hashes = hash_rows(release.features.take(rows))
    cells = np.unique(hashes, return_inverse=True)[1].astype(np.int64)
    if release.public_posterior is None:
        return cells
    known = np.round(release.public_posterior[rows], _SAME_DIGITS)
    keys = np.column_stack([cells.astype(np.float64), known])
    return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _drawn_with(context: AuditContext, labels: Literal["truth", "released"]) -> FloatArray | None:
    """Return roughly with what probabilities a model-based claim draws each row's labels.

    From the public P̂(y | x), or else from a model of the true or of the released ``labels``.
    float64 of shape (n, k); None for other mechanisms.
    """
    claim, scores = model_claim(context), context.release.public_posterior
    if claim is None:
        return None
    if scores is None:
        scores = cross_fitted_posterior(context, labels)
    return np.asarray(claim.floor + (1 - len(claim.classes) * claim.floor) * scores)


def _canaries(context: AuditContext) -> Proof | None:
    """Return the guesses of the canaries' labels, None where there are no canaries."""
    release = context.release
    if release.canaries is None:
        return None
    table, rows = guessed_events(context)
    complete = np.asarray(np.isfinite(release.canaries).all(axis=1))
    check_canaries(release.canaries[complete], context.truth[complete])
    drawn = rows[complete[rows]]
    guess = table_guess(table, context)[release.released[drawn]]
    priors, right = release.canaries[drawn, guess], guess == context.truth[drawn]
    likely = _drawn_with(context, "released")
    chances = None if likely is None else likely[drawn, release.released[drawn]]
    known = chances if release.public_posterior is not None else None
    tests = [CanaryGuesses(priors, int(right.sum()), 1.0, known)]
    chosen = _promising(context, priors, chances)
    if chosen is not None:
        stated = None if known is None else known[chosen]
        few = CanaryGuesses(priors[chosen], int(right[chosen].sum()), _GUESSES["promising"], stated)
        tests = [few, CanaryGuesses(priors, int(right.sum()), _GUESSES["all"], known)]
    return Proof(
        "canaries",
        "canaries",
        "canaries: each guess from the released label is right with a probability of log-odds "
        "at most ε above those with which its label was drawn (Poisson-binomial tail)",
        "the canaries' labels were drawn independently, with the given probabilities",
        tests,
        spread=float(1 - (release.canaries[drawn] ** 2).sum(axis=1).mean()),
    )


def _promising(
    context: AuditContext, priors: FloatArray, chance: FloatArray | None
) -> IndexArray | None:
    """Return the canaries whose released label is the least probable, best to guess."""
    # Chosen by features and released labels alone, given which the canaries' labels are
    # independent: abstaining from the others needs no correction.
    claim = model_claim(context)
    if chance is None or claim is None:
        return None
    order = np.argsort(chance, kind="stable")
    count = np.arange(1, len(order) + 1)
    p, q = np.cumsum(chance[order]) / count, np.cumsum(priors[order]) / count
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = 1 + (1 - claim.noise) / (claim.noise * p)
        right = q * ratio / (1 - q + q * ratio)
        value = np.log(ratio) - _QUANTILE / np.sqrt(count * right * (1 - right))
    value[: _FEWEST_CANARIES - 1] = -np.inf
    value = np.where(count * (1 - right) >= _FEWEST_WRONG, value, -np.inf)
    best = int(np.argmax(value))
    return order[: best + 1] if np.isfinite(value[best]) else None


def check_canaries(drawn: FloatArray, truth: IntArray) -> None:
    """Check the canaries' probabilities, shape (c, k), and true labels, shape (c,)."""
    everyone = np.arange(len(drawn))
    if len(drawn) < _FEWEST_CANARIES:
        raise InputError(
            f"There must be at least {_FEWEST_CANARIES} canaries with probabilities for every "
            f"class; {len(drawn):,} rows have them."
        )
    never = int((drawn[everyone, truth] <= 0).sum())
    if never:
        raise InputError(
            "The canaries' labels must be ones that their probabilities allow (the proxy must "
            f"overlap the release); {never:,} of {len(drawn):,} have probability 0."
        )
    likeliest, chance = drawn.argmax(axis=1), drawn.max(axis=1)
    hits = int((likeliest == truth).sum())
    tails = (
        ShiftedCoins.of(chance, up=True).at_least(hits, 0.0),
        ShiftedCoins.of(chance, up=False).at_most(hits, 0.0),
    )
    if min(tails) < _INCREDIBLE:
        raise InputError(
            "The canaries' labels must have been drawn with the given probabilities; those of "
            f"{len(drawn):,} canaries cannot have been (p < 1e-9)."
        )


def _model(context: AuditContext) -> Proof | None:
    """Return the evidence of the public model, None without one that agrees with the release."""
    # A released label differs from the true one only where it was drawn again, and then with the
    # probability 1 − P̂(y | x) that the model gives: the rows that differ bound λ from above, and
    # with it ε from below. That needs neither equal rows nor canaries, but the declared family.
    found = model_evidence(context)
    if found is None:
        return None
    return Proof(
        "public-model",
        "the public model",
        "released labels that differ from the true ones against the public model",
        "a released label is the true one or was drawn from the public model given, with one λ for "
        "all rows",
        [found],
    )


def model_evidence(context: AuditContext) -> ModelEvidence | None:
    """Return how often labels were changed, None without a model-based claim and its model."""
    claim, readings = model_claim(context), model_readings(context)
    if claim is None or not readings or claim.floor <= 0:
        return None
    truth, n = context.truth, len(context.release)
    changed, whole = context.release.released != truth, 1 - len(claim.classes) * claim.floor
    ways = [1 - (claim.floor + whole * known[np.arange(n), truth]) for known in readings]
    fitting = [float(way.mean()) for way in ways if _one_noise_fits(changed, way)]
    # The smallest of all ways, fitting or not: the bound is as valid as under the right one.
    least = min(float(way.mean()) for way in ways)
    if n < _PARTS or least <= 0 or not fitting:
        return None
    return ModelEvidence(n, int(changed.sum()), least, claim.floor, max(fitting))


def _one_noise_fits(changed: BoolArray, otherwise: FloatArray) -> bool:
    """Return whether one λ fits rows that the model is sure of and rows that it is not."""
    # A wrong model makes too few changes where it should make many, or the other way round.
    low, high = [], []
    for rows in np.array_split(np.argsort(otherwise, kind="stable"), _PARTS):
        count, mean = int(changed[rows].sum()), max(float(otherwise[rows].mean()), 1e-12)
        low.append(float(trials_lower(count, len(rows), _DOUBT)) / mean)
        high.append(float(trials_upper(count, len(rows), _DOUBT)) / mean)
    return max(low) <= min(high)


def guessed_events(context: AuditContext) -> tuple[BoolArray, IndexArray]:
    """Return which outputs point to which label, and the rows on which that may be tested."""
    # An output that is a class points to it. Other outputs are learnt on one half of the rows, and
    # only the other half is tested. Bool of shape (k, m), int64 of shape (r,).
    release = context.release
    if release.outputs == release.classes:
        return np.eye(len(release.classes), dtype=bool), np.arange(len(release))
    table = _learnt_channel(context)
    others = (table.sum(axis=0) - table) / (len(table) - 1)
    return table > others, context.half(1)


def _learnt_channel(context: AuditContext) -> FloatArray:
    release, rows = context.release, context.half(0)
    k, m = len(release.classes), len(release.outputs)
    counts = label_table(context.truth[rows], release.released[rows], k, m) + 0.5
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def table_guess(table: BoolArray, context: AuditContext) -> IntArray:
    """Return for each output the label that it points to most, int32 of shape (m,)."""
    release = context.release
    if release.outputs == release.classes:
        return np.arange(len(release.classes), dtype=np.int32)
    channel = _learnt_channel(context)
    lift = np.where(table, channel / channel.mean(axis=0), 0.0)
    return np.asarray(lift.argmax(axis=0), dtype=np.int32)


_FAMILY: Final = (
    "a violation is the claimed mechanism with less noise, the same model and the same floor"
)
_DRAWN: Final = (
    "the public probabilities are those that the mechanism draws from, where the counts do not "
    "contradict them"
)
# From the error probability of a kind of evidence, the true ε, a number of releases and their
# randomness: in which of them the test finds more than is claimed, bool.
Find = Callable[[float, float, int, np.random.Generator], BoolArray]


def observational_power(context: AuditContext) -> Iterator[Part]:
    """Yield the smallest excess over the claim that is found with 90 % probability."""
    # Raise InsufficientDataError if there is no certified bound for the mechanism.
    claim, release = context.claim.offers(PublicModelLabel), context.release
    assert claim is not None
    if release.outputs != release.classes:
        raise InsufficientDataError("the released values are not the classes")
    evidence = evidence_at_hand(context)
    if not evidence:
        raise InsufficientDataError(
            "too few rows have the same features as a row with another true label, and neither "
            "canaries nor a public model that the labels fit are given"
        )
    family, limit, alpha = ModelBasedFamily(claim.floor), claim.epsilon, 1 - context.plan.confidence
    known = release.public_posterior is not None
    finds, chances = zip(
        *(_find(test, part, family, limit, alpha) for part in evidence for test in part.tests),
        strict=True,
    )

    def excess(error: float) -> float:
        share = error / len(evidence)
        return smallest_excess(
            lambda epsilon: any(is_found(partial(find, share, epsilon)) for find in finds), limit
        )

    value, wanted = excess(alpha), context.plan.max_undetected_excess.at(limit)
    found = "as stated" if known else "counted, at the less informative end of an interval"
    shown = Estimate.estimated(
        EXCESS,
        EXCESS_TITLE,
        value,
        unit="nats",
        n=sum(max(test.bound(alpha).n for test in part.tests) for part in evidence),
        method="the smallest excess at which the certified bound from rows with equal features, "
        "canaries or the public model exceeds the claim in "
        f"{WANTED_POWER:.0%} of simulated releases; how improbable the released labels there are "
        f"to the model is {found}",
        assumptions=(
            _FAMILY,
            "as many guesses could be made at a larger ε as were made here",
            *((_DRAWN,) if known else ()),
        ),
    )
    yield Bound.of(shown, excess)
    if value <= wanted:
        return
    # What the release lacks for the wanted power.
    blind = min(family.blind_up_to(limit, chance) - limit for chance in chances)
    text = (
        f"Too few rows can be compared to find an excess of {wanted:g} nats. That needs more "
        "rows with equal features and different true labels, or more canaries, where the model "
        "finds one label improbable."
    )
    if blind > wanted:
        text = (
            f"However many rows like these there were, an excess up to "
            f"{math.ceil(100 * blind) / 100:g} nats would go unnoticed: ε is reached only in rows "
            "in which the model gives a label its floor, and the rows that can be compared lie "
            "above it. More power needs rows with equal features, or canaries, for which the model "
            "finds one label as improbable as the floor."
        )
    yield Note.warning("power", text)


def _find(
    test: GroupTest | CanaryGuesses | ModelEvidence,
    part: Proof,
    family: ModelBasedFamily,
    limit: float,
    alpha: float,
) -> tuple[Find, float]:
    """Return how a test fares in releases with another ε of the claimed family."""
    # And what the model gives the released labels behind the bound, on average.
    if isinstance(test, GroupTest):
        target = min(max(target_chance(test, alpha), family.floor), 1 - family.floor)

        def matched(
            error: float, epsilon: float, draws: int, rng: np.random.Generator
        ) -> BoolArray:
            outputs = family.outputs(epsilon, target)
            return test.simulated(outputs, error, draws, rng) > limit

        return matched, min(target, 1 - target)
    if isinstance(test, CanaryGuesses):
        chance, fewest = _guessed(part, test, family, alpha), cache(partial(test.fewest, limit))

        def guessed(
            error: float, epsilon: float, draws: int, rng: np.random.Generator
        ) -> BoolArray:
            with np.errstate(divide="ignore"):
                right = expit(logit(test.priors) + family.shift(epsilon, chance))
            return ShiftedCoins.of(right, up=False).draw(draws, rng) >= fewest(error)

        return guessed, float(np.mean(chance))

    def changed(error: float, epsilon: float, draws: int, rng: np.random.Generator) -> BoolArray:
        # The binomial distribution spreads at least as far as the changes do.
        share = min(family.noise(epsilon) * max(test.drawn_at_most, test.drawn_otherwise), 1.0)
        return test.epsilon(rng.binomial(test.rows, share, draws), error) > limit

    return changed, family.floor


def _guessed(
    part: Proof, guesses: CanaryGuesses, family: ModelBasedFamily, alpha: float
) -> FloatArray | float:
    """Return what the model gives the guessed labels: as stated, or at most, as counts show."""
    # A released label is the canary's own more often than another label drawn for it would be, by
    # (1 − λ) times the probability that the two differ: that gives λ, without the claim.
    every = part.tests[-1]
    assert isinstance(every, CanaryGuesses)
    other = float(every.priors.mean())
    right = [
        float(end(every.correct, len(every.priors), alpha / 2))
        for end in (trials_upper, trials_lower)
    ]
    least, most = (min(max(1 - (r - other) / part.spread, 1e-12), 1.0) for r in right)
    low, high = guessed_chance(
        guesses.priors, guesses.correct, (least, most), family.floor, alpha / 2
    )
    # The harmonic mean represents all of them: the shifts' average is what is seen.
    if guesses.chances is not None and low <= float(1 / np.mean(1 / guesses.chances)) <= high:
        return guesses.chances
    return high


def model_claim(context: AuditContext) -> PublicModelLabel | None:
    """Return the claim if it is model-based, with noise, on the labels as released; else None."""
    release, claim = context.release, context.claim.offers(PublicModelLabel)
    if claim is None or claim.noise == 0:
        return None
    same = release.outputs == release.classes and claim.classes == release.classes
    return claim if same else None
