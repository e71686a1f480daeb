"""Running the attacks on bags: fitted on one half of the bags, scored on the other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.attacks.models.posterior import fit_posterior
from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.label_inference.bag_posterior import bag_posterior
from ldpaudit.mechanisms.capabilities import BagSums
from ldpaudit.release import Bags, BoolArray, FloatArray

REFERENCES: Final[Mapping[str, str]] = {
    "prior": "Majority guess",
    "features-only": "Features only, no release",
}
ATTACKS: Final[Mapping[str, str]] = {
    "bag": "The bag’s released share",
    "posterior": "Features and the bag’s released share",
}
"""What uses the release, with the title of each."""


@dataclass(frozen=True)
class BagRun:
    """How one attack or reference did.

    Attributes
    ----------
    name, title : str
    right : tuple of float64 arrays
        For each of two held-out halves the share of labels guessed right in each bag.
    gained : tuple of float64 arrays
        The same less the share that the features alone give.
    """

    name: str
    title: str
    right: tuple[FloatArray, ...]
    gained: tuple[FloatArray, ...]


def run_attacks(context: AuditContext, claim: BagSums) -> tuple[list[BagRun], FloatArray]:
    """Fit and score every attack on both halves of the bags; true labels are known.

    Returns
    -------
    list of BagRun
    float64 array of shape (n,)
        P(second class | features) of every row, from a model that has not seen its bag.
    """
    bags = context.bags
    half = _halves(context, bags)
    shares, features = _priors(context, half)
    chances = {
        "prior": shares,
        "features-only": features,
        "bag": _posterior(shares, bags, claim),
        "posterior": _posterior(features, bags, claim),
    }
    yes = context.truth == 1
    right = {name: _per_bag((chance > 0.5) == yes, bags) for name, chance in chances.items()}
    return [_run(name, right, half) for name in chances], features


def _run(name: str, right: Mapping[str, FloatArray], half: FloatArray) -> BagRun:
    gained = right[name] - right["features-only"]
    return BagRun(
        name,
        {**REFERENCES, **ATTACKS}[name],
        tuple(right[name][half == side] for side in (0, 1)),
        tuple(gained[half == side] for side in (0, 1)),
    )


def _halves(context: AuditContext, bags: Bags) -> FloatArray:
    """Return a random fair split of the bags, zeros and ones of shape (b,)."""
    halves = np.zeros(len(bags.released))
    order = context.rng("aggregates", "halves").permutation(len(halves))
    halves[order[: len(halves) // 2]] = 1
    return halves


def _priors(context: AuditContext, half: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return for every row P(second class) and P(second class | features) from other bags."""
    release = context.release
    side = half[context.bags.members]
    shares, features = np.empty(len(release)), np.empty(len(release))
    for guessed in (0, 1):
        fitting, others = np.flatnonzero(side != guessed), np.flatnonzero(side == guessed)
        labels = context.truth[fitting]
        shares[others] = (labels.sum() + 1) / (len(labels) + 2)
        rng = context.rng("aggregates", "model", str(guessed))
        table = release.features.take(fitting)
        model = fit_posterior(table, labels, 2, rng, context.plan.threads)
        features[others] = model.predict(release.features.take(others))[:, 1]
    return shares, features


def shared_priors(bags: Bags) -> FloatArray:
    """Return the share of the second class that all released sums imply, for every row."""
    rows = len(bags.members)
    share = float(np.clip(bags.released.sum() / rows, 0.5 / rows, 1 - 0.5 / rows))
    return np.full(rows, share)


def _posterior(priors: FloatArray, bags: Bags, claim: BagSums) -> FloatArray:
    return bag_posterior(priors, bags.members, bags.released, claim.log_likelihood, claim.epsilon)


def _per_bag(right: BoolArray, bags: Bags) -> FloatArray:
    sizes = np.bincount(bags.members)
    return np.asarray(np.bincount(bags.members, weights=right) / sizes)
