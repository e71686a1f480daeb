"""Were the labels of classes with few people released as claimed? One exact test of them all."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import binom

from ldpaudit.arrays import FloatArray, IndexArray
from ldpaudit.estimators.epsilon.bounds import CountTable, class_counts
from ldpaudit.estimators.epsilon.consistency import binomial_p_value

MOST_PEOPLE: Final = 50
"""A class with more people is large enough for the bounds of ε."""
HELD_UP: Final = 0.05
"""An honest release is held up by its rare classes at most this often."""
_OWN: Final = 0.8
"""The share of a class's error probability that its usual output has; the others share the rest."""
_ROUNDING: Final = 1e-9
_DISAGREES: Final = 1e-3
_MOST_EPSILON: Final = 700.0


@dataclass(frozen=True)
class RareClass:
    """The output of a rare class that its channel explains least.

    Attributes
    ----------
    label, output : int
        Their codes.
    people, count : int
        How many people have the label, and how many of them the output.
    chance : float
        Of so many or more, under the claim.
    all_alike : float
        The chance that everybody gets the usual output: what a full disclosure would look like.
    """

    label: int
    output: int
    people: int
    count: int
    chance: float
    all_alike: float

    @property
    def can_be_seen(self) -> bool:
        """Whether a full disclosure would be noticed, were there no other rare class."""
        return self.all_alike <= HELD_UP * _OWN


@dataclass(frozen=True)
class RareClasses:
    """All rare classes of a release.

    Attributes
    ----------
    p_value : float
        Valid for all of them together: if the claim holds it is at most α with probability at most
        α.
    classes : tuple of RareClass
        The least likely first.
    """

    p_value: float
    classes: tuple[RareClass, ...]


def usual_outputs(
    channel: FloatArray, classes: tuple[object, ...], outputs: tuple[object, ...]
) -> IndexArray:
    """Return the output that stands for each class: its own name, else the most likely one."""
    own = {name: place for place, name in enumerate(outputs)}
    likely = channel.argmax(axis=1)
    return np.array([own.get(name, likely[y]) for y, name in enumerate(classes)], dtype=np.int64)


def rare_classes(
    counts: CountTable, channel: FloatArray, epsilon: float, usual: IndexArray
) -> RareClasses | None:
    """Test the labels of all classes with 1 to 50 people against the claimed channel.

    What was done to released labels afterwards is no leak: where the other classes do not get an
    output as often as claimed, a class may get it e^ε times as often as they do.

    Parameters
    ----------
    counts : integer array of shape (k, m)
        People by true label and output.
    channel : float64 array of shape (k, m)
        The claim, of ``epsilon`` nats.
    usual : int64 array of shape (k,)
        The output that a class has when its label is released unchanged.

    Returns
    -------
    RareClasses or None
        None where no class is rare. The smallest weighted p-value over classes and outputs is held
        against its own distribution: rows are independent given the true labels, and a class of
        so few people that no outcome is unlikely costs the others nothing.

    References
    ----------
    Tarone (1990), "A modified Bonferroni method for discrete data".
    """
    counts, sizes = np.asarray(counts, np.int64), class_counts(counts)
    rare = np.flatnonzero((sizes > 0) & (sizes <= MOST_PEOPLE))
    if not rare.size:
        return None
    n, seen, places = sizes[rare, None], counts[rare], np.arange(rare.size)
    claimed = np.clip(_allowed(counts, channel, epsilon)[rare] + _ROUNDING, 0.0, 1.0)
    weights = np.full(seen.shape, (1 - _OWN) / max(seen.shape[1] - 1, 1))
    weights[places, usual[rare]] = _OWN
    chances = np.asarray(binom.sf(seen - 1, n, claimed))
    surprise = chances / weights
    # The probability of a tail, for each class and output, that is as unlikely as the least likely.
    share = np.minimum(surprise.min() * weights * (1 + _ROUNDING), 1.0)
    attained = np.where(share < 1, binom.sf(binom.isf(share, n, claimed), n, claimed), 1.0)
    p_value = -np.expm1(np.log1p(-np.minimum(attained.sum(axis=1), 1 - 1e-16)).sum())
    alike = claimed[places, usual[rare]] ** sizes[rare]
    found = []
    for i in np.argsort(surprise.min(axis=1), kind="stable"):
        y, z = int(rare[i]), int(surprise[i].argmin())
        people, count = int(sizes[y]), int(counts[y, z])
        found.append(RareClass(y, z, people, count, float(chances[i, z]), float(alike[i])))
    return RareClasses(float(p_value), tuple(found))


def _allowed(counts: CountTable, channel: FloatArray, epsilon: float) -> FloatArray:
    """Return how often a class may have an output, also after a change of released labels."""
    sizes = class_counts(counts)[:, None]
    others, got = np.maximum(sizes.sum() - sizes, 1), counts.sum(axis=0) - counts
    expected = ((sizes * channel).sum(axis=0) - sizes * channel) / others
    fits = binomial_p_value(got, others, np.clip(expected, 0, 1)) > _DISAGREES / channel.size
    times = np.exp(min(epsilon, _MOST_EPSILON))
    return np.asarray(np.where(fits, channel, np.clip(times * got / others, channel, 1.0)))
