"""Several releases as their audit sees them: claimed channels in one coding, rows that count."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Final

import numpy as np

from ldpaudit.arrays import FloatArray, IndexArray
from ldpaudit.audits.assumptions.rows import counted
from ldpaudit.audits.assumptions.standing import standing
from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext, Repeats
from ldpaudit.audits.mechanism.evidence import feature_dependence
from ldpaudit.mechanisms import from_declaration
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import RepeatedReleases
from ldpaudit.result import Kind

_ALL_PAIRS: Final = 12
"""Of more releases only neighbours are compared."""


@dataclass(frozen=True, eq=False)
class SeenReleases:
    """Several releases with what is claimed of each.

    Attributes
    ----------
    asked : Repeats
        The releases, and what is claimed of their noise.
    contexts : tuple of AuditContext, length t
        One for each release.
    """

    asked: Repeats
    contexts: tuple[AuditContext, ...]

    @classmethod
    def of(cls, context: AuditContext) -> "SeenReleases":
        """See the releases of a context, which lends its plan, progress and stop."""
        assert context.repeats is not None
        contexts = []
        for release in context.repeats.releases.releases:
            claim = from_declaration(release.declaration, release.classes)
            own = replace(
                context, release=release, claim=claim, whole=None, repeats=None, _shared={}
            )
            contexts.append(own)
        return cls(context.repeats, tuple(contexts))

    @property
    def releases(self) -> RepeatedReleases:
        """The releases, and which row is whose."""
        return self.asked.releases

    @property
    def context(self) -> AuditContext:
        """The context of the last release, whose plan all share."""
        return self.contexts[-1]

    @property
    def alpha(self) -> float:
        """The error probability of one bound."""
        return 1 - self.context.plan.confidence

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of releases that are compared."""
        places = range(len(self.contexts))
        if len(self.contexts) <= _ALL_PAIRS:
            return list(combinations(places, 2))
        return self.neighbours

    @property
    def neighbours(self) -> list[tuple[int, int]]:
        """Each release and the next one."""
        return [(place, place + 1) for place in range(len(self.contexts) - 1)]

    @cached_property
    def channels(self) -> tuple[Channel, ...] | None:
        """The claimed channels, in the order of the releases' common classes and outputs.

        None where one of them has no channel of labels alone.
        """
        found = []
        for one in self.contexts:
            channel = None if one.release.strata is not None else aligned_channel(one)
            if channel is None:
                return None
            matrix = np.zeros((len(self.releases.classes), len(self.releases.outputs)))
            columns = [self.releases.outputs.index(output) for output in channel.outputs]
            rows = [channel.classes.index(label) for label in self.releases.classes]
            matrix[:, columns] = channel.matrix[rows]
            found.append(Channel(matrix, self.releases.classes, self.releases.outputs))
        return tuple(found)

    @property
    def matrices(self) -> list[FloatArray] | None:
        """The claimed channels as matrices, (k, m) each."""
        return None if self.channels is None else [one.matrix for one in self.channels]

    @cached_property
    def alike(self) -> bool:
        """Whether all releases have the same claimed channel, or the same declaration."""
        matrices = self.matrices
        if matrices is None:
            first, *others = [(c.claim.name, dict(c.claim.declaration())) for c in self.contexts]
            return all(first == other for other in others)
        return all(np.allclose(matrices[0], other, atol=1e-9) for other in matrices)

    @cached_property
    def counted(self) -> IndexArray:
        """The people in all releases that bounds count: of those who share noise, one."""
        people = self.releases.in_all
        for place, one in enumerate(self.contexts):
            rows = counted(one).rows
            if rows is not None:
                people = people[np.isin(self.releases.rows[people, place], rows)]
        return people

    @cached_property
    def unchanged(self) -> IndexArray:
        """The counted people whose true label is the same in all releases."""
        truth = self.releases.table(self.counted, truth=True)
        same = (truth == truth[:, :1]).all(axis=1)
        return np.asarray(self.counted[same])

    @cached_property
    def changed(self) -> int:
        """How many people in all releases do not have the same true label in all of them."""
        truth = self.releases.table(self.releases.in_all, truth=True)
        return int((truth != truth[:, :1]).any(axis=1).sum())

    def refusal(self) -> str | None:
        """Return why no bound holds for the claims, None where bounds do."""
        for number, one in enumerate(self.contexts, 1):
            reason = feature_dependence(one)
            if reason is None and one.release.strata is not None:
                reason = "its channel differs from stratum to stratum"
            if reason is not None:
                return f"release {number}: {reason}"
        return None

    def standing(self, *assumptions: str) -> tuple[Kind, tuple[str, ...]]:
        """Return the kind of a bound, and its assumptions, those refuted of a release marked."""
        found = [standing(one, *assumptions) for one in self.contexts]
        return next((f for f in found if f[0] != "certified"), found[0])
