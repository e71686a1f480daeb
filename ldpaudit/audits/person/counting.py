"""Lower bounds of ε of several answers from true against released labels: what is counted."""

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from scipy.special import ndtri

from ldpaudit.arrays import FloatArray, IndexArray, IntArray
from ldpaudit.audits.observational.power import WANTED_POWER
from ldpaudit.audits.person.answers import Answers
from ldpaudit.estimators.epsilon.power import worth_looking_for
from ldpaudit.estimators.epsilon.strongest import (
    PILOT_SHARE,
    BoundEvidence,
    epsilon_evidence,
    presumed_channel,
)
from ldpaudit.estimators.person.evidence import (
    AnswersEvidence,
    OfColumns,
    column_codes,
    releases_evidence,
)
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.joint import OnDomains
from ldpaudit.release import label_table

FEWEST: Final = 40
"""People with a label that did not change, for a bound of all releases."""
_TOO_SHORT: Final = 0.7
"""A bound that stays below a claim by more than this share of it says nothing of an excess."""
_LOOSE: Final = 0.25


def detectable_excess(
    seen: Answers, limit: float, rng: np.random.Generator, *, adds_up: bool = True
) -> Callable[[float], float] | None:
    """Return about the smallest excess over a claim that is found, by the error probability.

    A release as claimed is simulated and bounded like the true one. Its bound stays below the claim
    by about z_α standard errors; what lies z_α + z_β of them above is found with probability 1 − β.
    None where nothing can be simulated. ``adds_up``: whether bounds of releases are added up.
    """
    drawn = seen.simulated(rng)
    evidence = None if drawn is None else evidence_of(seen, rng, drawn)
    if evidence is not None and seen.joined is not None and not adds_up:
        evidence = evidence.without_sums()
    if evidence is None or not 0 < limit < math.inf:
        return None

    def excess(alpha: float) -> float:
        quantile, bound = -ndtri(alpha), evidence.bound(alpha).epsilon
        if limit - bound > _TOO_SHORT * limit:
            return math.inf
        # The simulated bound may have come out near the claim by chance, or above it.
        spread = evidence.bound(_LOOSE).epsilon - bound
        usual = spread * quantile / (quantile + ndtri(_LOOSE)) if alpha < _LOOSE else 0.0
        short = max(limit - bound, usual)
        return float(short * (1 + ndtri(WANTED_POWER) / quantile))

    return excess


def evidence_of(
    seen: Answers, rng: np.random.Generator, drawn: IntArray | None = None
) -> AnswersEvidence | None:
    """Count what was released of true labels, or simulated; None where nothing can be counted."""
    if seen.joined is not None:
        return _of_releases(seen, rng, drawn)
    released, added, codes = seen.released if drawn is None else drawn, [], []
    for code in np.unique(seen.strata):
        rows = np.flatnonzero(seen.strata == code)
        labels, outputs = seen.truth[rows], released[rows]
        channels = [seen.channel(place, rows[0]) for place in range(len(seen.contexts))]
        if seen.independent:
            found = [_of_column(seen, labels, outputs, a, c, rng) for a, c in enumerate(channels)]
            own = tuple(one for one in found if one is not None)
            added += [OfColumns(own)] if len(own) == len(found) else []
        codes += _of_codes(seen, labels, outputs, rng)
    return AnswersEvidence.of(added, codes)


def _of_codes(
    seen: Answers, labels: IntArray, outputs: IntArray, rng: np.random.Generator
) -> list[BoundEvidence]:
    sizes = [(len(c.release.classes), len(c.release.outputs)) for c in seen.contexts]
    joint, channel = seen.joint, None
    if isinstance(joint, OnDomains):
        labels, outputs = seen.in_domains(labels, outputs)
        claimed = joint.channel()
        channel = None if claimed is None else worth_looking_for(claimed).matrix
    return list(column_codes(labels, outputs, sizes, channel, rng))


def _of_column(
    seen: Answers,
    labels: IntArray,
    outputs: IntArray,
    place: int,
    channel: FloatArray | None,
    rng: np.random.Generator,
) -> BoundEvidence | None:
    """Return the evidence of a column; None where it has one label."""
    release = seen.contexts[place].release
    if channel is not None and seen.joint is not None:
        k, m = channel.shape
        plain = Channel(channel, tuple(range(k)), tuple(range(m)))
        channel = worth_looking_for(plain).matrix
    sizes = len(release.classes), len(release.outputs)
    return epsilon_evidence(label_table(labels[:, place], outputs[:, place], *sizes), channel, rng)


def _of_releases(
    seen: Answers, rng: np.random.Generator, drawn: IntArray | None
) -> AnswersEvidence | None:
    people = seen.unchanged
    if len(people) < FEWEST:
        return None
    channels, people = _presumed(seen, people, rng)
    released = seen.releases.table(people) if drawn is None else drawn
    return releases_evidence(seen.releases.truth(0, people), released, channels, seen.noise, rng)


def _presumed(
    seen: Answers, people: IndexArray, rng: np.random.Generator
) -> tuple[list[FloatArray], IndexArray]:
    """Return the channels that bounds are designed for, and the people who are counted by them."""
    if seen.channels is not None:
        return [worth_looking_for(channel).matrix for channel in seen.channels], people
    people = rng.permutation(people)
    pilot, rest = np.split(people, [int(PILOT_SHARE * len(people))])
    shape = len(seen.releases.classes), len(seen.releases.outputs)
    labels = seen.releases.truth(0, pilot)
    tables = (
        label_table(labels, seen.releases.released(place, pilot), *shape)
        for place in range(len(seen.contexts))
    )
    return [presumed_channel(table) for table in tables], np.sort(rest)
