"""Lower bounds of ε of several releases of people whose true label did not change."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ldpaudit.arrays import FloatArray, IndexArray, IntArray
from ldpaudit.errors import InputError
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.power import detection_power, sharpened, smallest_detectable
from ldpaudit.estimators.epsilon.strongest import BoundEvidence, epsilon_evidence
from ldpaudit.estimators.person.added_up import AddedPlan, Tally, added_plan
from ldpaudit.estimators.person.answers import Coded, coded_fresh, coded_remembered
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import label_table

Noise = Literal["fresh", "remembered"]
"""Whether each release draws anew, or repeats the answer for a label that did not change."""
ADDED = "added"
_IMPOSSIBLE = 1e-8
"""What the claim makes less likely than this stays impossible with any excess."""
_SHARES: Mapping[Noise | None, Mapping[str, float]] = {
    "fresh": {"fresh": 0.2, ADDED: 0.8},
    "remembered": {"remembered": 1.0},
    None: {"fresh": 0.1, "remembered": 0.3, ADDED: 0.6},
}
"""Each bound's share of the error probability, by what is claimed of the noise."""


@dataclass(frozen=True, eq=False)
class RepeatsEvidence:
    """The counts that bounds of all releases together need: a function of alpha.

    Attributes
    ----------
    joint : mapping from name to BoundEvidence
        Answers of all releases as one code, by the noise that was presumed.
    presumed : mapping from name to float64 array of shape (k, m), or None
        The channel that each was designed for; None where it was not written out.
    added : tuple of AddedPlan and Tally, or None
        What adds up over releases with noise of their own.
    shares : mapping from name to float
        Shares of the error probability.
    people : int
        How many were counted.
    """

    joint: Mapping[str, BoundEvidence]
    presumed: Mapping[str, FloatArray | None]
    added: tuple[AddedPlan, Tally] | None
    shares: Mapping[str, float]
    people: int

    def bound(self, alpha: float, *, added: bool) -> EpsilonBound:
        """Return the strongest bound at level 1 − alpha, in nats.

        ``added``: whether that counts which needs releases with noise of their own.
        """
        bounds = [e.strongest(alpha * self.shares[name]) for name, e in self.joint.items()]
        if added and self.added is not None:
            bounds.append(self.added_bound(alpha * self.shares[ADDED]))
        best = max(bounds, key=lambda bound: bound.epsilon)
        return replace(best, alpha=alpha, n=self.people)

    def joint_bound(self, alpha: float) -> EpsilonBound:
        """Return the strongest bound that holds however the releases' noise goes together."""
        shares = {name: self.shares[name] for name in self.joint}
        whole = sum(shares.values())
        bounds = [e.strongest(alpha * shares[n] / whole) for n, e in self.joint.items()]
        return max(bounds, key=lambda bound: bound.epsilon)

    def added_bound(self, alpha: float) -> EpsilonBound:
        """Return the bound for releases with noise of their own, at its own level."""
        assert self.added is not None
        plan, tally = self.added
        return plan.bound(tally, alpha)


def repeats_evidence(
    labels: IntArray,
    released: IntArray,
    channels: Sequence[FloatArray],
    noise: Noise | None,
    rng: np.random.Generator,
) -> RepeatsEvidence | None:
    """Count what bounds ε of several releases of people whose true label did not change.

    Parameters
    ----------
    labels : int32 array of shape (n,)
        True labels.
    released : int32 array of shape (n, t)
        What was released of them, release by release.
    channels : float64 arrays of shape (k, m)
        The presumed channel of each release: chooses what is counted, and is not relied on.
    noise : {"fresh", "remembered"} or None
        What is claimed of the noise.

    Returns
    -------
    RepeatsEvidence or None
        None where fewer than two labels occur.
    """
    k, shares = len(channels[0]), _SHARES[noise]
    sizes = np.bincount(labels, minlength=k).astype(np.int64)
    if np.count_nonzero(sizes) < 2:
        return None
    joint, every = {}, _coded(channels, released, shares)
    for name, coded in every.items():
        table = label_table(labels, coded.codes, k, coded.size)
        evidence = epsilon_evidence(table, coded.channel, rng)
        if evidence is not None:
            joint[name] = evidence
    plan = added_plan(sizes, channels) if ADDED in shares else None
    added = None if plan is None else (plan, plan.tally(labels, released, rng))
    presumed = {name: every[name].channel for name in joint}
    return RepeatsEvidence(joint, presumed, added, shares, len(labels)) if joint else None


def _coded(
    channels: Sequence[FloatArray], released: IntArray, shares: Mapping[str, float]
) -> dict[str, Coded]:
    coded = {}
    if "fresh" in shares:
        coded["fresh"] = coded_fresh(channels, released)
    if "remembered" in shares and len({c.shape for c in channels}) == 1:
        coded["remembered"] = coded_remembered(channels[0], released)
    return coded


def smallest_excess(
    evidence: RepeatsEvidence,
    channels: Sequence[Channel],
    sizes: IndexArray,
    limit: float,
    alpha: float,
    power: float,
) -> float:
    """Return an excess over the claim that would be found with probability ``power`` at least.

    Parameters
    ----------
    evidence : RepeatsEvidence
        Its designs are used, not what was counted.
    channels : Channel
        The claimed ones, whose entries are raised to powers: the excess is shared by all releases
        in proportion to their ε, or is that of all answers as one.
    sizes : int64 array of shape (k,)
        People of each true label.
    limit : float
        The claimed ε of all releases, in nats.
    alpha : float
        The error probability of the whole bound.
    """
    found = [_of_joint(evidence, name, sizes, limit, alpha, power) for name in evidence.joint]
    if evidence.added is not None:
        found.append(_of_added(evidence, channels, sizes, limit, alpha, power))
    return min(found)


def _of_joint(
    evidence: RepeatsEvidence,
    name: str,
    sizes: IndexArray,
    limit: float,
    alpha: float,
    power: float,
) -> float:
    """Return the excess found by answers as one, their channel raised to one power."""
    matrix, level = evidence.presumed[name], alpha * evidence.shares[name]
    if matrix is None or np.ptp(matrix, axis=0).max() <= 0:
        return math.inf
    possible = np.where(matrix > _IMPOSSIBLE, matrix, 0.0)
    rows = possible / possible.sum(axis=1, keepdims=True)
    claimed = Channel(rows, tuple(range(len(rows))), tuple(range(rows.shape[1])))

    def found(epsilon: float) -> float:
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                worse = sharpened(claimed, epsilon).matrix
        except InputError:  # So far from the claim that probabilities overflow.
            return 0.0
        return detection_power(evidence.joint[name].design, sizes, worse, limit, level)

    return smallest_detectable(found, limit, power) - limit


def _of_added(
    evidence: RepeatsEvidence,
    channels: Sequence[Channel],
    sizes: IndexArray,
    limit: float,
    alpha: float,
    power: float,
) -> float:
    """Return the excess found by the releases added up."""
    assert evidence.added is not None
    plan, level = evidence.added[0], alpha * evidence.shares[ADDED]

    def found(epsilon: float) -> float:
        worse = [sharpened(c, c.epsilon * epsilon / limit).matrix for c in channels]
        return power if plan.surely(worse, sizes, level, power) > limit else 0.0

    return smallest_detectable(found, limit, power) - limit
