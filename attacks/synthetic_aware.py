"""The attacker on double randomized response who knows what the generator makes."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ldpaudit.attacks.costs import Price
from ldpaudit.attacks.interface import Model, Need
from ldpaudit.attacks.model_attack import ModelAttack
from ldpaudit.attacks.models.counts import clean_prior
from ldpaudit.attacks.models.row_channel import fit_row_channels
from ldpaudit.attacks.models.synthetic_rows import OriginalShare, original_share
from ldpaudit.mechanisms.capabilities import SyntheticFeatures
from ldpaudit.release import FeatureTable, FloatArray, Release


class SyntheticAwareAttack(ModelAttack):
    """P(y | x̃, ỹ) ∝ T[y, ỹ] (w(x̃) η_y(x̃) + (1 − w(x̃)) p_y), w the chance of an original row.

    The same as ∝ p_y T[y, ỹ] f_y(x̃) with f_y = (1 − λ) P_{X|y} + (λ/k) Σ_j P̂_{X|j}. The attacker
    has the synthetic table, recognises rows that were replaced, whose features reveal nothing about
    the person, and learns P(y | x) from the others.
    """

    name = "synthetic-aware"
    title = "Who knows the generator"
    needs: frozenset[Need] = frozenset({"channel", "features", "synthetic-rows"})
    uses_own_label = True
    prices: Mapping[str, Price] = MappingProxyType({name: Price(fixed=2.0, each=4.0, most=5.0)})

    def learn(self, release: Release, rng: np.random.Generator) -> Model:
        """Learn which rows are original, then P(y | x) through each row's own channel."""
        claim = self.knowledge.claim
        assert isinstance(claim, SyntheticFeatures)
        assert release.synthetic is not None
        k, transition = len(release.classes), self.knowledge.transition(release)
        share = original_share(
            release.features, release.synthetic, claim.noise, k, rng, self.knowledge.threads
        )
        prior = clean_prior(release.released, transition)
        original = share.predict(release.features)[:, None]
        anyone = (prior @ transition)[release.released][:, None]
        likelihood = original * transition.T[release.released] + (1 - original) * anyone
        # A row that is surely synthetic has no information, and would only use up the sample.
        rows = np.flatnonzero(original[:, 0] > 0)
        model = fit_row_channels(release.features.take(rows), likelihood[rows], rng)
        return DiscountedModel(model, share, prior)


@dataclass(frozen=True)
class DiscountedModel:
    """P(y | x̃) = w(x̃) η_y(x̃) + (1 − w(x̃)) p_y."""

    model: Model
    share: OriginalShare
    prior: FloatArray

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(y | x̃), float64 of shape (n, k)."""
        original = self.share.predict(features)[:, None]
        return np.asarray(original * self.model.predict(features) + (1 - original) * self.prior)
