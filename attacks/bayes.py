"""The attack that combines features and released label by Bayes' rule."""

from ldpaudit.attacks.classifier import ClassifierAttack
from ldpaudit.attacks.interface import Need


class BayesAttack(ClassifierAttack):
    """P(y | x, ỹ) ∝ P(y | x) P(ỹ | y, x) with P(y | x) learnt from released labels alone.

    All it knows is public: the release and its declaration, for model-based randomized response
    also the public model. With the exact P(y | x) no attack guesses better (Busa-Fekete et al.
    2024).
    """

    name = "bayes"
    title = "Classifier and channel (Bayes)"
    needs: frozenset[Need] = frozenset({"row-channel", "features"})
    uses_own_label = True
