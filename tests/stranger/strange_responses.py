"""Two mechanisms that ldpaudit does not ship, as another package would add them: one file."""

from dataclasses import dataclass

import numpy as np

from ldpaudit.doors import (
    AnalysedMechanism,
    Channel,
    Family,
    FeatureDependentLabel,
    Parameter,
    Traits,
    check_classes,
    check_epsilon,
    family,
)


def cyclic_channel(classes, stated):
    """The released label is d steps around a circle of labels with weight e^{−ε d/⌊k/2⌋}."""
    k = len(classes)
    gap = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    weights = np.exp(-stated * np.minimum(gap, k - gap) / (k // 2))
    return Channel(weights / weights.sum(axis=1, keepdims=True), classes, classes)


CYCLIC = Family(
    traits=Traits(
        name="cyclic-response",
        title="cyclic response",
        labels="classes",
        outputs="labels",
        label_depends_on_features=False,
        features="unchanged",
        rows="independent",
        options=("epsilon", "classes", "labels"),
        stated_by=("epsilon",),
        whole=True,
        needs=frozenset(),
    ),
    parameters=(Parameter("classes", check_classes), Parameter("epsilon", check_epsilon, "stated")),
    channel=cyclic_channel,
    describe=lambda m: f"cyclic response on {len(m.classes)} labels: ε = {m.epsilon:.6g} nats",
)


@dataclass(frozen=True)
class CautiousResponse(FeatureDependentLabel, AnalysedMechanism):
    """Randomized response with ε, with only ε/10 where the row's first feature is above 0."""

    traits = Traits(
        name="cautious-response",
        title="cautious response",
        labels="classes",
        outputs="labels",
        label_depends_on_features=True,
        features="unchanged",
        rows="independent",
        options=("epsilon", "classes", "labels"),
        stated_by=("epsilon",),
        whole=True,
        needs=frozenset(),
    )

    declared = (Parameter("classes", check_classes), Parameter("epsilon", check_epsilon))

    classes: tuple
    epsilon: float

    @property
    def channel(self):
        return None

    @property
    def description(self):
        return f"cautious response on {len(self.classes)} labels: ε = {self.epsilon:.6g} at most"

    def _response(self, epsilon):
        return family("randomized-response").from_epsilon(self.classes, epsilon)

    def delta(self, epsilon):
        return self._response(self.epsilon).delta(epsilon)

    def rdp(self, alpha):
        return self._response(self.epsilon).rdp(alpha)

    def sample_rows(self, labels, features, rng=None):
        careful = np.asarray(features.column(0)) > 0
        bold = self._response(self.epsilon).sample(labels, rng)
        return np.where(careful, self._response(self.epsilon / 10).sample(labels, rng), bold)
