"""Guesses by the released labels of people with the same first category."""

import numpy as np

from ldpaudit.doors import Knowledge, conditioned


class FirstColumnAttack:
    name = "first-column"
    title = "First category alone"
    needs = frozenset({"channel", "features"})
    uses_release = True
    learns_from_asked = False
    most_rows = None

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge

    def groups(self, release):
        codes = release.features.categorical
        return codes[:, 0] + 1 if codes.shape[1] else np.zeros(len(codes), dtype=int)

    def fit(self, release, rng):
        codes, k = self.groups(release), len(release.classes)
        clean = self.knowledge.channel.inverse[release.released]
        size = max(release.features.cardinalities[:1], default=0) + 1
        sums = [np.bincount(codes, clean[:, y], size) for y in range(k)]
        table = np.clip(np.stack(sums, axis=1), 1.0, None)
        self.table = table / table.sum(axis=1, keepdims=True)
        return self

    def posterior(self, release):
        own = self.table[self.groups(release)]
        return conditioned(own, self.knowledge.likelihood(release))
