"""ε of all releases together, bounded from below with true labels."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ldpaudit.arrays import FloatArray, IndexArray
from ldpaudit.audits.assumptions.stated import FEATURE_BLIND, INDEPENDENT
from ldpaudit.audits.person.claimed import UNCHANGED, claimed_epsilon
from ldpaudit.audits.person.names import EXCESS, LOWER
from ldpaudit.audits.person.noise import FoundNoise
from ldpaudit.audits.person.seen_releases import SeenReleases
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.power import worth_looking_for
from ldpaudit.estimators.epsilon.strongest import PILOT_SHARE, presumed_channel
from ldpaudit.estimators.person.releases import RepeatsEvidence, repeats_evidence, smallest_excess
from ldpaudit.release import label_table
from ldpaudit.result import Estimate, Finding, Note

OWN_NOISE: Final = "given the true labels, each release drew noise of its own"
REFUTED: Final = 0.001
"""The p-value of fresh noise from which the releases' bounds are not added up."""
_POWER: Final = 0.9
_FEWEST: Final = 40
_JOINT = (
    "answers in all releases as one, against the true label: valid however the releases' noise "
    "goes together"
)
_ADDED = "one event of each release, counted for one label and for the others, and added up"


@dataclass(frozen=True)
class _Found:
    """The evidence, whether the releases' bounds add up, and how many people of each label."""

    evidence: RepeatsEvidence
    adds_up: bool
    sizes: IndexArray

    def strongest(self, alpha: float) -> EpsilonBound:
        return self.evidence.bound(alpha, added=self.adds_up)


def bounds_finding(seen: SeenReleases, noise: FoundNoise) -> Finding:
    """Return the lower bounds of ε of people whose true label did not change.

    Raises
    ------
    InsufficientDataError
        If there are too few of them.
    """
    refusal = seen.refusal()
    if refusal is not None:
        text = f"The releases together were not bounded: {refusal}."
        return Finding(notes=(Note.warning("person", text),))
    found = _gathered(seen, noise)
    if isinstance(found, str):
        text = f"The releases together were not bounded: {found}."
        return Finding(notes=(Note.warning("person", text),))
    bounds: dict[str, Callable[[float], float]] = {
        LOWER: lambda alpha: found.strongest(alpha).epsilon
    }
    estimates = list(_estimates(seen, found))
    excess = _excess(seen, found)
    if excess is not None:
        bounds[EXCESS] = excess
        estimates.append(_power(excess(seen.alpha)))
    return Finding(tuple(estimates), bounds=bounds)


def _gathered(seen: SeenReleases, noise: FoundNoise) -> _Found | str:
    people, rng = seen.unchanged, seen.context.rng("person", "epsilon")
    if len(people) < _FEWEST:
        return f"fewer than {_FEWEST} people are in all of them with a label that did not change"
    channels, people = _presumed(seen, people, rng)
    labels = seen.releases.truth(0, people)
    released = seen.releases.table(people)
    evidence = repeats_evidence(labels, released, channels, seen.asked.noise, rng)
    if evidence is None:
        return "fewer than two classes occur among labels that did not change"
    claimed = seen.asked.noise
    fresh = noise.told == "fresh" or (claimed == "fresh" and noise.told == "unclear")
    adds_up = fresh and (noise.fresh is None or noise.fresh > REFUTED)
    sizes = np.bincount(labels, minlength=len(seen.releases.classes)).astype(np.int64)
    return _Found(evidence, adds_up, sizes)


def _presumed(
    seen: SeenReleases, people: IndexArray, rng: np.random.Generator
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


def _estimates(seen: SeenReleases, found: _Found) -> Iterator[Estimate]:
    alpha = seen.alpha
    methods = f"{_JOINT}, and {_ADDED}; each has its share of the error"
    words = methods if found.adds_up else _JOINT
    own = (OWN_NOISE,) if found.adds_up else ()
    title = "All releases together, strongest bound"
    yield _bound(seen, LOWER, title, found.strongest(alpha), words, own)
    joint = found.evidence.joint_bound(alpha)
    own_level = "at its own level"
    yield _bound(seen, f"{LOWER}.joint", "All answers as one", joint, f"{_JOINT}; {own_level}", ())
    if found.adds_up and found.evidence.added is not None:
        added = found.evidence.added_bound(alpha)
        words = f"{_ADDED}; {own_level}"
        yield _bound(seen, f"{LOWER}.added", "The releases added up", added, words, (OWN_NOISE,))


def _bound(
    seen: SeenReleases,
    name: str,
    title: str,
    bound: EpsilonBound,
    method: str,
    further: tuple[str, ...],
) -> Estimate:
    kind, assumptions = seen.standing(FEATURE_BLIND, INDEPENDENT)
    return Estimate.lower_bound(
        name,
        title,
        bound.epsilon,
        seen.context.plan.confidence,
        kind=kind,
        axis="epsilon",
        unit="nats",
        n=bound.n,
        method=f"{method}; {UNCHANGED}",
        assumptions=(*assumptions, *further),
    )


def _excess(seen: SeenReleases, found: _Found) -> Callable[[float], float] | None:
    """Return the excess that would be found, by the error probability; None where unknown."""
    channels, limit = seen.channels, claimed_epsilon(seen, seen.asked.noise)
    if channels is None or limit is None or not 0 < limit < np.inf:
        return None
    evidence = found.evidence if found.adds_up else replace(found.evidence, added=None)

    def excess(alpha: float) -> float:
        try:
            return smallest_excess(evidence, channels, found.sizes, limit, alpha, _POWER)
        except InsufficientDataError:
            return float("inf")

    return excess


def _power(value: float) -> Estimate:
    return Estimate.exact(
        EXCESS,
        "Smallest excess of all releases together found with 90 % power",
        value,
        unit="nats",
        method="from binomial distributions, an excess that all releases share in proportion to "
        "their claimed ε",
    )
