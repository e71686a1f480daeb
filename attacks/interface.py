"""What every label-inference attack states and does, and what it may know."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, Self, TypeVar

import numpy as np

from ldpaudit.device import DeviceName
from ldpaudit.mechanisms.capabilities import PublicModelLabel, SyntheticFeatures
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.models.corrections import conditioned as conditioned
from ldpaudit.randomness import child_generator
from ldpaudit.release import FeatureTable, FloatArray, IntArray, Release
from ldpaudit.work.progress import NoProgress, Progress

# What an attack needs.
# ``truth``: true labels of other people; ``channel``: the declared channel, the same for all
# features; ``row-channel``: the declared channel, or that of each row; ``same-labels``: the
# declared channel, or released labels that are class names and can be taken as true; ``class-
# names``: released labels that are class names, with or without a declaration; ``features``: a
# feature column that varies; ``synthetic-rows``: double randomized response and its synthetic
# table; ``order``: the places of the rows in the file.
Need = Literal[
    "truth",
    "channel",
    "row-channel",
    "same-labels",
    "class-names",
    "features",
    "synthetic-rows",
    "order",
]

# Why an attack is left out, by what is missing.
NEEDS: Final[dict[Need, str]] = {
    "truth": "it learns from true labels of other people, and none are given",
    "channel": "it uses the declared channel, and none is declared",
    "row-channel": "it uses the declared channel, and none is declared",
    "same-labels": "no channel is declared, and the released labels are not the classes",
    "class-names": "it compares released labels with classes, and they are not the same",
    "features": "it guesses from the features, and none of them varies",
    "synthetic-rows": "it discounts synthetic rows, which need double randomized response to be "
    "declared and the synthetic table to be given (--synthetic)",
    "order": "it looks at neighbouring rows, and the order of the rows is not known",
}
_CHANNELS: Final = ("channel", "row-channel")
_NO_PUBLIC_MODEL = (
    "each row has a channel of its own, and the public model's P̂(label | features) is not given "
    "(--public-posterior)"
)

T = TypeVar("T")


class Model(Protocol):
    """A fitted estimate of P(y | x)."""

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(y | x), float64 of shape (n, k), rows summing to 1."""


@dataclass(frozen=True)
class OneFunction:
    """A model that is one function."""

    predict: Callable[[FeatureTable], FloatArray]


class SharedModel:
    """A model of P(y | x) that several attacks use on the same rows."""

    def __init__(self, model: Model) -> None:
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
        """Keep an answer that was computed elsewhere."""
        self._answers = [(features, posterior), *self._answers[:1]]


@dataclass(frozen=True)
class Knowledge:
    """What an attacker knows besides the release, and what the attacks on one fold share.

    Attributes
    ----------
    channel : Channel or None
        The declared channel, rows in the order of the release's classes and columns in the order
        of its outputs; None where it is unknown or depends on the features.
    threads : int
        Threads for model fitting.
    seed : int
        The root of the randomness of shared models.
    progress : Progress
    claim : Mechanism or None
        The declared mechanism, for attacks that use more of it than its channel.
    device : {"auto", "cpu", "cuda"}
        Where networks run.
    in_order : int32 array of shape (n,), optional
        All released labels in the order of the file, which places count; default: those of the
        rows that an attack is given.
    """

    channel: Channel | None
    threads: int = 1
    seed: int = 0
    progress: Progress = field(default_factory=NoProgress)
    claim: Mechanism | None = None
    device: DeviceName = "cpu"
    in_order: IntArray | None = field(default=None, repr=False)
    _shared: dict[str, Any] = field(default_factory=dict, repr=False)

    def once(self, key: str, build: Callable[[np.random.Generator], T]) -> T:
        """Return the result of ``build``, which runs once for each ``key``.

        ``build`` takes a generator that depends on the seed and the key alone, so the order of the
        attacks changes no number.
        """
        if key not in self._shared:
            self._shared[key] = build(child_generator(self.seed, "shared", key))
        value: T = self._shared[key]
        return value

    def share(self, key: str, value: object) -> None:
        """Store a ``value`` under a ``key``, so that :meth:`once` returns it and builds nothing."""
        self._shared[key] = value

    def transition(self, release: Release) -> FloatArray:
        """Return the channel T, float64 of shape (k, m), for the labels of a ``release``.

        Without a channel it is the identity: labels are taken as true.
        """
        if self.channel is not None:
            return self.channel.matrix
        return np.eye(len(release.classes))

    def knows_channel(self, release: Release) -> bool:
        """Return whether P(ỹ | y, x) is known for every row of a ``release``.

        By one channel, or by one for each row.
        """
        by_row = self.public_model is not None and release.public_posterior is not None
        return self.channel is not None or by_row

    @property
    def public_model(self) -> PublicModelLabel | None:
        """The claim where it has a channel for each row, from a public model."""
        return None if self.claim is None else self.claim.offers(PublicModelLabel)

    def likelihood(self, release: Release) -> FloatArray:
        """Return P(ỹ | y, x) at each row's released label ỹ for every y, float64 of shape (n, k).

        The n rows are those of ``release``. The indicator of y = ỹ where labels are taken as true.
        """
        posterior = release.public_posterior
        if posterior is None or self.public_model is None:
            return np.asarray(self.transition(release).T[release.released])
        return self.public_model.row_likelihood(posterior, release.released)


class Attack(Protocol):
    """One attack: learns from some rows of a release, then guesses the labels of others."""

    @property
    def name(self) -> str:
        """The stable name in estimate ids, for instance ``"released-label"``."""

    @property
    def title(self) -> str:
        """What people call it."""

    @property
    def needs(self) -> frozenset[Need]:
        """What it needs; with ``truth``, ``fit`` gets true labels."""

    @property
    def uses_release(self) -> bool:
        """Whether it uses released labels: if not, it is a reference, not an attack."""

    @property
    def learns_from_asked(self) -> bool:
        """Whether ``posterior`` also learns from the rows it is asked about, truth apart.

        So does a real attacker, who has the whole release. Its scores are then bounded given all
        that is released: rows are right independently of one another, not alike.
        """

    @property
    def most_rows(self) -> int | None:
        """The most rows it should be asked about at once (expensive attacks), or None."""

    def fit(self, release: Release, rng: np.random.Generator) -> Self:
        """Learn from these rows, and return itself.

        True labels are there only for attacks that need them.
        """

    def posterior(self, release: Release) -> FloatArray:
        """Return P(true label | what the attack sees), float64 of shape (n, k), for other rows.

        The release has no true labels. Rows sum to 1; the guess is the largest entry.
        """


def missing_need(attack: Attack, release: Release, knowledge: Knowledge) -> str | None:
    """Return why the attack cannot run on this release, None where it can."""
    named = release.outputs == release.classes
    claim, known = knowledge.claim, knowledge.channel is not None
    double = known and claim is not None and claim.offers(SyntheticFeatures) is not None
    lacking: dict[Need, bool] = {
        "truth": release.truth is None,
        "channel": knowledge.channel is None,
        "row-channel": not knowledge.knows_channel(release),
        "same-labels": knowledge.channel is None and not named,
        "class-names": not named,
        "features": release.features.is_constant(),
        "synthetic-rows": not double or release.synthetic is None,
        "order": release.places is None,
    }
    for need, lacks in lacking.items():
        if need in attack.needs and lacks:
            if knowledge.claim is not None and knowledge.claim.by_stratum and need in _CHANNELS:
                return "it uses one channel, and each stratum has its own"
            own_channels = knowledge.public_model is not None
            return _NO_PUBLIC_MODEL if own_channels and need in _CHANNELS else NEEDS[need]
    return None


def as_seen_by(attack: Attack, release: Release) -> Release:
    """Return the release that the attack may learn from: true labels only if it needs them."""
    return release if "truth" in attack.needs else without_truth(release)


def without_truth(release: Release) -> Release:
    """Return the release as the public sees it."""
    return replace(release, truth=None)
