"""Attacks on rare kinds of releases; what one learns with is imported when it learns."""

import numpy as np

from ldpaudit.attacks.interface import Model, Need
from ldpaudit.doors import ModelAttack, Release, SyntheticFeatures


class SyntheticAwareAttack(ModelAttack):
    """P(y | x̃, ỹ) ∝ T[y, ỹ] (w(x̃) η_y(x̃) + (1 − w(x̃)) p_y), w the chance of an original row."""

    # The same as ∝ p_y T[y, ỹ] f_y(x̃) with f_y = (1 − λ) P_{X|y} + (λ/k) Σ_j P̂_{X|j}. The
    # attacker has the synthetic table, recognises rows that were replaced, whose features reveal
    # nothing about the person, and learns P(y | x) from the others.

    name = "synthetic-aware"
    title = "Who knows the generator"
    needs: frozenset[Need] = frozenset({"channel", "features", "synthetic-rows"})
    uses_own_label = True

    def learn(self, release: Release, rng: np.random.Generator) -> Model:
        from ldpaudit.extras.kinds.synthetic.knowing import discounted_model

        stated = self.knowledge.claim
        claim = None if stated is None else stated.offers(SyntheticFeatures)
        assert claim is not None
        transition, threads = self.knowledge.transition(release), self.knowledge.threads
        return discounted_model(release, transition, claim.noise, rng, threads)
