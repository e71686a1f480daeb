"""The attacker who does not know the mechanism, or does not trust the declaration."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from ldpaudit.attacks.confident_joint import confident_channel
from ldpaudit.attacks.costs import Price
from ldpaudit.attacks.interface import Model, Need
from ldpaudit.attacks.model_attack import ModelAttack
from ldpaudit.attacks.models.posterior import fit_posterior
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import FloatArray, Release

_MOST_ROWS = 40_000
_MOST_ASKED = 50_000


class UnknownChannelAttack(ModelAttack):
    """``bayes`` with a channel that is estimated from the release, not taken from a declaration.

    A model of the released label, cross-fitted on the attacker's rows, gives the channel by
    confident learning; then P(y | x) is learnt through it and combined with the released label.
    """

    name = "unknown-channel"
    title = "Who does not know the channel"
    needs: frozenset[Need] = frozenset({"class-names", "features"})
    uses_own_label = True
    most_rows = _MOST_ASKED
    prices: Mapping[str, Price] = MappingProxyType({name: Price(fixed=1.5, each=3.0, most=5.0)})

    def learn(self, release: Release, rng: np.random.Generator) -> Model:
        """Estimate the channel, then learn the model through it."""
        rows = rng.permutation(len(release))[:_MOST_ROWS]
        release = release.take(rows)
        self.transition = confident_channel(self._cross_fitted(release, rng), release.released)
        channel = Channel(self.transition, release.classes, release.outputs)
        k, threads = len(release.classes), self.knowledge.threads
        return fit_posterior(release.features, release.released, k, rng, threads, channel=channel)

    def _cross_fitted(self, release: Release, rng: np.random.Generator) -> FloatArray:
        k, half = len(release.classes), len(release) // 2
        halves = np.split(np.arange(len(release)), [half])
        posterior = np.empty((len(release), k))
        for fitting, asked in (halves, halves[::-1]):
            labels = release.released[fitting]
            model = fit_posterior(
                release.features.take(fitting), labels, k, rng, self.knowledge.threads
            )
            posterior[asked] = model.predict(release.features.take(asked))
        return posterior
