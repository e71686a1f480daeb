"""Most attacks: a model of P(y | x), alone or with each person's released label."""

# First the base class, and the models that several attacks share; then attackers who know class
# frequencies, channel or true labels, and those who learn from released labels alone.

from typing import Final, Self

import numpy as np

from ldpaudit.attacks.interface import Knowledge, Model, Need, SharedModel
from ldpaudit.errors import InputError
from ldpaudit.models.corrections import conditioned
from ldpaudit.models.counts import Frequencies, clean_prior, measured_channel
from ldpaudit.models.label_model import PosteriorModel, fit_posterior
from ldpaudit.models.row_channels import fit_row_channels
from ldpaudit.randomness import child_generator
from ldpaudit.release import FloatArray, Release

# Where an audit stores the model of the true labels that it has fitted.
TRUTH_MODEL: Final = "truth"
_TRUST: Final = 0.5
# Rows × columns × labels of a half up to which a model of more rows is chosen again …
_SMALL: Final = 1e5
# … up to which rows are guessed in four parts, each by a model of all others; else in two …
_MIDDLE: Final = 5e5
# … and beyond which half of the rows teach as much, to within 0.2 points.
_ENOUGH: Final = 2e6


class ModelAttack:
    """Guesses by a model of P(y | x); if ``uses_own_label``, by P(y | x) P(ỹ | y, x).

    A subclass states its name, title and needs, and writes :meth:`learn`. A package registers it in
    the group ``ldpaudit.attacks``; ``--attack FILE.py:CLASS`` runs it without that.

    Parameters
    ----------
    knowledge : Knowledge
        What the attacker knows besides the release; an attribute, too.

    Attributes
    ----------
    name : str
        The stable name in ids, for instance ``"released-label"``; that of the entry point.
    title : str
        What people call it.
    needs : frozenset of str
        What it is left out without: some of ``"truth"``, ``"channel"``, ``"row-channel"``,
        ``"same-labels"``, ``"class-names"``, ``"features"``, ``"synthetic-rows"``, ``"order"``.
    uses_release : bool
        Whether it uses released labels: if not, it is a reference, not an attack.
    uses_own_label : bool
        Whether it also uses a person's released label, through the declared channel.
    learns_from_asked : bool
        Whether :meth:`posterior` also learns from the rows that it is asked about.
    most_rows : int or None
        The most rows that it should be asked about at once; None: any number.
    transition : float64 array of shape (k, m) or None
        The channel T[y, ỹ] that the attack estimates itself; None: it does not.
    model : Model or None
        What :meth:`learn` returned; its ``predict`` takes a FeatureTable and returns P(y | x),
        float64 of shape (n, k).
    """

    name: str
    title: str
    needs: frozenset[Need]
    uses_release = True
    uses_own_label = False
    learns_from_asked = False
    most_rows: int | None = None
    transition: FloatArray | None = None

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.model: Model | None = None

    def learn(self, release: Release, rng: np.random.Generator) -> Model:
        """Return the model learnt from the rows of ``release``.

        Its true labels are there only if ``needs`` names them. All randomness comes from ``rng``.
        The model has a method ``predict``, which takes a FeatureTable of n rows and returns
        P(y | x), float64 of shape (n, k), with rows that sum to 1.
        """
        raise NotImplementedError

    def fit(self, release: Release, rng: np.random.Generator) -> Self:
        """Learn the model from ``release`` by :meth:`learn` with ``rng``; return the attack."""
        self.model = self.learn(release, rng)
        return self

    def likelihood(self, release: Release) -> FloatArray | None:
        """Return P(ỹ | y, x) of the n rows of ``release``, float64 (n, k); None: ỹ is not used."""
        if self.transition is not None:
            return np.asarray(self.transition.T[release.released])
        known = self.uses_own_label and self.knowledge.knows_channel(release)
        return self.knowledge.likelihood(release) if known else None

    def posterior(self, release: Release) -> FloatArray:
        """Return P(y | what the attack sees) of the n rows of ``release``, float64 (n, k)."""
        assert self.model is not None
        posterior = self.model.predict(release.features)
        likelihood = self.likelihood(release)
        return posterior if likelihood is None else conditioned(posterior, likelihood)


def truth_model(knowledge: Knowledge, release: Release) -> SharedModel:
    """Return P(y | x), learnt from features and true labels once for each fold."""

    def build(rng: np.random.Generator) -> SharedModel:
        assert release.truth is not None
        k = len(release.classes)
        model = fit_posterior(release.features, release.truth, k, rng, knowledge.threads)
        return SharedModel(model)

    return knowledge.once(TRUTH_MODEL, build)


def noise_aware_model(knowledge: Knowledge, release: Release) -> SharedModel:
    """Return P(y | x) of the true label, learnt from features and released labels."""
    # Corrected by the declared channel, or by each row's own where it is known; without either the
    # released labels are taken as true. Fitted once for each fold.

    def build(rng: np.random.Generator) -> SharedModel:
        knowledge.progress.step("fitting a noise-aware model")
        channel, features, codes = knowledge.channel, release.features, release.released
        if channel is None and knowledge.knows_channel(release):
            return SharedModel(fit_row_channels(features, knowledge.likelihood(release), rng))
        n_labels = len(release.classes) if channel is None else len(release.outputs)
        threads = knowledge.threads
        return SharedModel(fit_posterior(features, codes, n_labels, rng, threads, channel))

    return knowledge.once("noise-aware", build)


class PriorAttack(ModelAttack):
    """The reference that guesses the most frequent class, according to the released labels."""

    name = "prior"
    title = "Majority guess"
    needs: frozenset[Need] = frozenset({"same-labels"})
    uses_release = False

    def learn(self, release: Release, rng: np.random.Generator) -> Model:  # noqa: ARG002
        return Frequencies(clean_prior(release.released, self.knowledge.transition(release)))


class FeaturesOnlyAttack(ModelAttack):
    """The reference without the release: P(y | x) learnt from other people's true labels."""

    # An attack that does no better has learnt nothing from the release about the people in it (Wu
    # et al. 2023, label-independent attack utility).

    name = "features-only"
    title = "Features only, no release"
    needs: frozenset[Need] = frozenset({"truth"})
    uses_release = False

    def learn(self, release: Release, rng: np.random.Generator) -> Model:  # noqa: ARG002
        return truth_model(self.knowledge, release)


class ReleasedLabelAttack(PriorAttack):
    """Maximum a posteriori under the channel and the class frequencies; sees no features."""

    # Without a declared channel it takes the released label as true.

    name = "released-label"
    title = "Believing the released label"
    uses_release = uses_own_label = True

    def learn(self, release: Release, rng: np.random.Generator) -> Model:
        k = len(release.classes)
        even = Frequencies(np.full(k, 1.0 / k))
        return even if self.knowledge.channel is None else super().learn(release, rng)

    def likelihood(self, release: Release) -> FloatArray:
        transition = self.knowledge.transition(release)
        if self.knowledge.channel is None:
            transition = (1 - _TRUST) / len(transition) + _TRUST * transition
        return np.asarray(transition.T[release.released])


class OracleAttack(ModelAttack):
    """P(y | x, ỹ) ∝ P(y | x) T[y, ỹ], both factors learnt from true labels of other people."""

    # The informed attacker of Busa-Fekete et al. (2024): it uses the same P(y | x) as the
    # features-only reference, so the difference of the two is the additive advantage of the
    # release. Since it counts the channel instead of trusting the claim, it also finds what a
    # release reveals beyond its claim.

    name = "oracle"
    title = "Oracle (true model, channel)"
    needs: frozenset[Need] = frozenset({"truth"})
    uses_own_label = True

    def learn(self, release: Release, rng: np.random.Generator) -> Model:  # noqa: ARG002
        assert release.truth is not None
        claimed = None if self.knowledge.channel is None else self.knowledge.channel.matrix
        if claimed is not None or not self.knowledge.knows_channel(release):
            shape = (len(release.classes), len(release.outputs))
            self.transition = measured_channel(release.truth, release.released, shape, claimed)
        return truth_model(self.knowledge, release)


class ClassifierAttack(ModelAttack):
    """A model of P(y | x) learnt from released labels, corrected for the channel."""

    # Each row's own released label is not used: what this attack finds, the release reveals about
    # people whose label was never released.

    name = "classifier"
    title = "Noise-aware classifier"
    needs: frozenset[Need] = frozenset({"same-labels", "features"})

    def learn(self, release: Release, rng: np.random.Generator) -> Model:  # noqa: ARG002
        return noise_aware_model(self.knowledge, release)


class BayesAttack(ClassifierAttack):
    """P(y | x, ỹ) ∝ P(y | x) P(ỹ | y, x) with P(y | x) learnt from released labels alone."""

    # All it knows is public: the release and its declaration, for model-based randomized response
    # also the public model. With the exact P(y | x) no attack guesses better (Busa-Fekete et al.
    # 2024).

    name = "bayes"
    title = "Classifier and channel (Bayes)"
    needs: frozenset[Need] = frozenset({"row-channel", "features"})
    uses_own_label = True


class WholeReleaseAttack(BayesAttack):
    """``bayes`` learnt from every released row but those of the row's own part."""

    # An attacker has the whole release. The rows to guess are cut into parts, and each part's P(y |
    # x) is learnt from the fitted rows and the released labels of the other parts: seven eighths of
    # the release instead of a half, three quarters where rows are many. A row's own released label
    # enters through the channel alone; a model that had seen it would count it twice.

    name = "bayes-whole-release"
    title = "Whole release, channel (Bayes)"
    needs: frozenset[Need] = frozenset({"channel", "features"})
    learns_from_asked = True
    seen: Release | None = None

    def fit(self, release: Release, rng: np.random.Generator) -> Self:
        if _work(release) > _ENOUGH:
            raise InputError("half of so many rows teach as much as all: see 'bayes'")
        self.seen = release
        return super().fit(release, rng)

    def posterior(self, release: Release) -> FloatArray:
        assert self.seen is not None
        assert isinstance(self.model, SharedModel)
        before, n, work = len(self.seen), len(release), _work(self.seen)
        k, threads = len(release.classes), self.knowledge.threads
        like = self.model.model if work > _SMALL else None
        assert like is None or isinstance(like, PosteriorModel)
        everyone = self.seen.followed_by(release)
        parts = 4 if work <= _MIDDLE else 2
        part = child_generator(self.knowledge.seed, self.name).permutation(n) % parts
        posterior = np.empty((n, k))
        for number in range(min(parts, n)):
            asked, others = np.flatnonzero(part == number), np.flatnonzero(part != number)
            rng = child_generator(self.knowledge.seed, self.name, str(number))
            rows = everyone.take(np.append(np.arange(before), before + others))
            labels, channel = rows.released, self.knowledge.channel
            model = fit_posterior(rows.features, labels, k, rng, threads, channel, like)
            posterior[asked] = model.predict(release.features.take(asked))
        return conditioned(posterior, self.knowledge.likelihood(release))


def _work(release: Release) -> int:
    return len(release) * max(release.features.width, 1) * len(release.classes)
