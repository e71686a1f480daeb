"""What every label-inference attack implements, and what it may know."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, Self, TypeVar

import numpy as np

from ldpaudit.attacks.posterior_model import PosteriorModel
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.progress import NoProgress, Progress
from ldpaudit.randomness import child_generator
from ldpaudit.release import FeatureTable, FloatArray, Release

Need = Literal["truth", "channel", "same-labels", "features"]
"""What an attack cannot do without.

``truth``: true labels of other people; ``channel``: the declared channel, the same for all
features; ``same-labels``: the declared channel, or released labels that are class names, so that
they can be taken at their word; ``features``: a feature column that varies.
"""

NEEDS: Final[dict[Need, str]] = {
    "truth": "it learns from true labels of other people, and none are given",
    "channel": "it uses the declared channel, and none is declared",
    "same-labels": "no channel is declared, and the released labels are not the classes",
    "features": "it guesses from the features, and none of them varies",
}
"""Why an attack is left out, by what it lacks."""

T = TypeVar("T")


class SharedModel:
    """A model of P(y | x) that several attacks ask about the same rows."""

    def __init__(self, model: PosteriorModel) -> None:
        self.model = model
        self._answers: list[tuple[FeatureTable, FloatArray]] = []

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return the model's probabilities, float64 of shape (n, K); two answers are kept."""
        for asked, answer in self._answers:
            if asked is features:
                return answer
        posterior = self.model.predict(features)
        self.remember(features, posterior)
        return posterior

    def remember(self, features: FeatureTable, posterior: FloatArray) -> None:
        """Keep an answer that is already known."""
        self._answers = [(features, posterior), *self._answers[:1]]


@dataclass(frozen=True)
class Knowledge:
    """What an attacker knows besides the release, and what the attacks on one fold share.

    Attributes
    ----------
    channel : Channel or None
        The declared channel, rows in the order of the release's classes and columns in the order
        of its outputs; None where it is not known or depends on the features.
    threads : int
        Threads for model fitting.
    seed : int
        The root of the randomness of shared models.
    progress : Progress
        Told what is being fitted.
    """

    channel: Channel | None
    threads: int = 1
    seed: int = 0
    progress: Progress = field(default_factory=NoProgress)
    _shared: dict[str, Any] = field(default_factory=dict, repr=False)

    def once(self, key: str, build: Callable[[np.random.Generator], T]) -> T:
        """Return what ``build`` gives, computed by the first attack that asks for ``key``.

        ``build`` gets a generator that depends on the key alone, so the order of the attacks
        changes no number.
        """
        if key not in self._shared:
            self._shared[key] = build(child_generator(self.seed, "shared", key))
        value: T = self._shared[key]
        return value

    def share(self, key: str, value: object) -> None:
        """Store what an audit has already fitted."""
        self._shared[key] = value

    def transition(self, release: Release) -> FloatArray:
        """Return the channel T (k × m), the identity where labels are taken at their word."""
        if self.channel is not None:
            return self.channel.matrix
        return np.eye(len(release.classes))


class Attack(Protocol):
    """One attack: learns from some rows of a release, then guesses the labels of others."""

    @property
    def name(self) -> str:
        """The stable name in estimate ids, for instance ``"released-label"``."""

    @property
    def needs(self) -> frozenset[Need]:
        """What it cannot do without; ``truth`` also says that ``fit`` gets true labels."""

    @property
    def uses_release(self) -> bool:
        """Whether it looks at released labels: if not, it is a reference, not an attack."""

    @property
    def most_rows(self) -> int | None:
        """The most rows it should be asked about at once (expensive attacks), or None."""

    def fit(self, release: Release, rng: np.random.Generator) -> Self:
        """Learn from the rows given; true labels are there only for attacks that need them."""

    def posterior(self, release: Release) -> FloatArray:
        """Return P(true label | what the attack sees), float64 of shape (n, k), for other rows.

        The release comes without true labels. Rows sum to 1; the guess is the largest entry.
        """


AttackFactory = Callable[[Knowledge], Attack]
"""What a module registers: called with what the attacker knows."""


def missing_need(attack: Attack, release: Release, knowledge: Knowledge) -> str | None:
    """Return why the attack cannot run on this release, None where it can."""
    lacking: dict[Need, bool] = {
        "truth": release.truth is None,
        "channel": knowledge.channel is None,
        "same-labels": knowledge.channel is None and release.outputs != release.classes,
        "features": release.features.is_constant(),
    }
    for need, lacks in lacking.items():
        if need in attack.needs and lacks:
            return NEEDS[need]
    return None


def as_seen_by(attack: Attack, release: Release) -> Release:
    """Return the release as the attack may learn from it: true labels only if it needs them."""
    return release if "truth" in attack.needs else without_truth(release)


def without_truth(release: Release) -> Release:
    """Return the release as the public sees it."""
    return replace(release, truth=None)


def condition_on_released(
    posterior: FloatArray, transition: FloatArray, release: Release
) -> FloatArray:
    """Return P(y | x, ỹ) ∝ P(y | x) T[y, ỹ], float64 of shape (n, k).

    Where every class excludes the released label the posterior stays as it is.
    """
    joint = posterior * transition.T[release.released]
    total = joint.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, joint / np.where(total > 0, total, 1.0), posterior))
