"""Several answers of each person as their audit sees them: codes, claimed channels, who counts.

Rows are people; an answer is a private column of one release, or a release of one column.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Final, TypeVar

import numpy as np

from ldpaudit.arrays import FloatArray, IndexArray, IntArray
from ldpaudit.audits.assumptions.rows import counted
from ldpaudit.audits.assumptions.standing import standing
from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.mechanism.evidence import feature_dependence
from ldpaudit.audits.part import rows_looked_at
from ldpaudit.estimators.person.evidence import Noise
from ldpaudit.mechanisms import from_declaration
from ldpaudit.mechanisms.capabilities import LabelByStratum
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.joint import JointMechanism, OnDomains
from ldpaudit.mechanisms.joint import from_declaration as joint_from_declaration
from ldpaudit.release import ColumnReleases, FileColumns, Release
from ldpaudit.result import Kind

EPSILON: Final = "person.epsilon"
LOWER: Final = "person.epsilon_lower"
RELEASE_ONLY: Final = "person.release_only_epsilon_lower"
EXCESS: Final = "person.min_detectable_excess"
DRAWS: Final = "person.independence"
MOST_ROWS: Final = 1 << 21
"""Of a larger release so many rows are looked at, drawn blind to all labels."""
MOST_PAIRS: Final = 30
"""Pairs of columns that are looked at together."""
_ALL_PAIRS: Final = 12
"""Of more releases only neighbours are compared."""
Codes = TypeVar("Codes", IntArray, IndexArray)


@dataclass(frozen=True, eq=False)
class Answers:
    """Several answers of each person, with what is claimed of each.

    Attributes
    ----------
    contexts : tuple of AuditContext, length d
        One for each answer; a column is without the other columns among its features.
    joint : JointMechanism or None
        What is claimed of all columns; None where nothing is.
    rows : int64 array or None
        Of columns: the rows that bounds may count, one of rows that share noise; None for all.
    joined : ColumnReleases or None
        Where answers are releases of one column: whose each row is.
    noise : {"fresh", "remembered"} or None
        What is claimed of the noise of the releases.
    """

    contexts: tuple[AuditContext, ...]
    joint: JointMechanism | None = None
    rows: IndexArray | None = None
    joined: ColumnReleases | None = None
    noise: Noise | None = None

    @classmethod
    def of(cls, context: AuditContext) -> "Answers":
        """See the answers of a context, which lends its plan, progress and stop."""
        if context.over is not None:
            asked = context.over
            contexts = _contexts(asked.releases.releases, context)
            return cls(contexts, joined=asked.releases, noise=asked.noise)
        assert context.companions is not None
        file = context.companions.file
        some = rows_looked_at(len(file), context.plan.seed, MOST_ROWS)
        columns = [file.alone(place) for place in range(len(file.columns))]
        columns = columns if some is None else [column.take(some) for column in columns]
        contexts = _contexts(columns, context)
        return cls(contexts, claimed_of(file), _counted(contexts))

    @property
    def releases(self) -> ColumnReleases:
        """Whose each row is, where answers are releases."""
        assert self.joined is not None
        return self.joined

    @property
    def context(self) -> AuditContext:
        """The context of the last answer, whose plan all share."""
        return self.contexts[-1]

    @property
    def alpha(self) -> float:
        """The error probability of one bound."""
        return 1 - self.context.plan.confidence

    @property
    def called(self) -> str:
        """What all answers are called."""
        return "all columns together" if self.joined is None else "all releases together"

    @property
    def independent(self) -> bool:
        """Whether the columns' draws are claimed to be independent, or nothing else is claimed."""
        return self.joint is None or self.joint.independent

    @property
    def knows_truth(self) -> bool:
        """Whether the true labels of all answers are known."""
        return all(one.release.truth is not None for one in self.contexts)

    @cached_property
    def released(self) -> IntArray:
        """Output codes of the people who count, int32 of shape (r, d)."""
        if self.joined is not None:
            return self.joined.table(self.counted)
        return np.stack([self._taken(one.release.released) for one in self.contexts], axis=1)

    @cached_property
    def truth(self) -> IntArray:
        """True codes of the people who count, int32 of shape (r, d)."""
        if self.joined is not None:
            return self.joined.table(self.counted, truth=True)
        labels = np.stack([self._taken(one.truth) for one in self.contexts], axis=1)
        return labels.astype(np.int32)

    @cached_property
    def strata(self) -> IndexArray:
        """Codes of rows whose columns all have the same channels, int64 of shape (r,)."""
        return self._taken(self._every_stratum)

    @cached_property
    def _every_stratum(self) -> IndexArray:
        codes = np.zeros(len(self.contexts[0].release), np.int64)
        for one in self.contexts:
            strata = one.release.strata
            if strata is not None:
                both = codes * strata.count + strata.codes
                codes = np.unique(both, return_inverse=True)[1].astype(np.int64)
        return codes

    def within_strata(self) -> Iterator["Answers"]:
        """Yield the answers of each stratum; themselves where there are none."""
        if all(one.release.strata is None for one in self.contexts):
            yield self
            return
        for code in np.unique(self._every_stratum):
            rows = np.flatnonzero(self._every_stratum == code)
            contexts = tuple(_in_stratum(one, rows) for one in self.contexts)
            yield Answers(contexts, self.joint, _counted(contexts))

    def strata_of(self, place: int) -> IntArray:
        """Return the stratum of each counted row for one column; all 0 where it has none."""
        release = self.contexts[place].release
        codes = np.zeros(len(release), np.int32) if release.strata is None else release.strata.codes
        return self._taken(codes)

    @property
    def same_labels(self) -> list[bool]:
        """Whether each column's codes of labels and outputs stand for the same values."""
        return [
            one.release.numeric is None and one.release.outputs == one.release.classes
            for one in self.contexts
        ]

    def refusal(self) -> str | None:
        """Return why no bound holds for the claims, None where bounds do."""
        kind = "column" if self.joined is None else "release"
        for number, one in enumerate(self.contexts, 1):
            reason, by_stratum = feature_dependence(one), one.release.strata is not None
            if self.joined is None:
                reason = None if by_stratum else reason
            elif reason is None and by_stratum:
                reason = "its channel differs from stratum to stratum"
            if reason is not None:
                return f"{kind} {number}: {reason}"
        return None

    def by_stratum(self, place: int) -> FloatArray | None:
        """Return a column's claimed channel in each of its strata, float64 (s, k, m), or None."""
        one = self.contexts[place]
        if isinstance(one.claim, LabelByStratum) and one.release.strata is not None:
            return _aligned(one.claim, one)
        channel = aligned_channel(one)
        return None if channel is None else channel.matrix[None]

    def channel(self, place: int, row: int) -> FloatArray | None:
        """Return a column's claimed channel for a counted row, float64 (k, m), or None."""
        matrices = self.by_stratum(place)
        return None if matrices is None else matrices[self.strata_of(place)[row]]

    def in_domains(self, labels: IntArray, outputs: IntArray) -> tuple[IntArray, IntArray]:
        """Return true and released codes (r, d) in the order of the joint mechanism's domains."""
        joint, releases, found = self.joint, [one.release for one in self.contexts], []
        assert isinstance(joint, OnDomains)
        for codes, names in ((labels, "classes"), (outputs, "outputs")):
            columns = []
            for a, (domain, release) in enumerate(zip(joint.domains, releases, strict=True)):
                into = np.array([domain.index(label) for label in getattr(release, names)])
                columns.append(into[codes[:, a]])
            found.append(np.stack(columns, axis=1).astype(np.int32))
        return found[0], found[1]

    def simulated(self, rng: np.random.Generator) -> IntArray | None:
        """Draw answers of the people whom bounds count as claimed; None without a claim."""
        if isinstance(self.joint, OnDomains):
            return _drawn(self.joint, self, rng)
        drawn: list[IntArray] = []
        for place in range(len(self.contexts)):
            if self.noise == "remembered" and drawn:
                drawn.append(drawn[0])
                continue
            rows = self._claimed_rows(place)
            if rows is None:
                return None
            drawn.append(draw(rows, rng))
        return np.stack(drawn, axis=1)

    def _claimed_rows(self, place: int) -> FloatArray | None:
        """Return the claimed distribution of each counted person's answer, float64 (r, m)."""
        if self.joined is not None:
            labels = self.joined.truth(0, self.unchanged)
            return None if self.matrices is None else np.asarray(self.matrices[place][labels])
        matrices = self.by_stratum(place)
        if matrices is None:
            return None
        return np.asarray(matrices[self.strata_of(place), self.truth[:, place]])

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

    def standing(self, *assumptions: str) -> tuple[Kind, tuple[str, ...]]:
        """Return the kind of a bound, and its assumptions, those refuted of an answer marked."""
        found = [standing(one, *assumptions) for one in self.contexts]
        return next((f for f in found if f[0] != "certified"), found[0])

    def _taken(self, values: Codes) -> Codes:
        return values if self.rows is None else values[self.rows]


def claimed_of(file: FileColumns) -> JointMechanism | None:
    """Return what is claimed of all columns, None where nothing was declared."""
    if file.declaration is None:
        return None
    return joint_from_declaration(file.declaration, [one.classes for one in file.columns])


def _contexts(releases: Sequence[Release], context: AuditContext) -> tuple[AuditContext, ...]:
    return tuple(
        replace(
            context,
            release=one,
            claim=from_declaration(one.declaration, one.classes),
            whole=None,
            companions=None,
            over=None,
            _shared={},
        )
        for one in releases
    )


def _counted(contexts: Sequence[AuditContext]) -> IndexArray | None:
    rows: IndexArray | None = None
    for one in contexts:
        own = counted(one).rows
        if own is not None:
            rows = own if rows is None else np.intersect1d(rows, own)
    return rows


def _in_stratum(context: AuditContext, rows: IndexArray) -> AuditContext:
    """Return the context of rows of one stratum, with its claim."""
    strata, claim = context.release.strata, context.claim
    if strata is not None:
        claim = claim.by_stratum[strata.codes[rows[0]]]
    release = replace(context.release.take(rows), strata=None)
    return replace(context, release=release, claim=claim, companions=None, _shared={})


def _aligned(claim: LabelByStratum, context: AuditContext) -> FloatArray:
    """Return the strata's channels in the order of the release's classes and outputs."""
    release = context.release
    matrices = np.zeros((len(claim.values), len(release.classes), len(release.outputs)))
    rows = [claim.classes.index(label) for label in release.classes]
    columns = [release.outputs.index(label) for label in claim.outputs]
    matrices[:, :, columns] = claim.matrices[:, rows]
    return matrices


def draw(rows: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw an output of each row's distribution, float64 (n, m) → int32 (n,)."""
    above = rng.random((len(rows), 1)) > np.cumsum(rows, axis=1)[:, :-1]
    return np.asarray(above.sum(axis=1), dtype=np.int32)


def _drawn(joint: OnDomains, seen: Answers, rng: np.random.Generator) -> IntArray:
    """Draw from a joint mechanism, whose domains may be in another order than the labels here."""
    drawn = joint.sample(seen.in_domains(seen.truth, seen.released)[0], rng)
    releases = [one.release for one in seen.contexts]
    back = [
        np.array([r.outputs.index(label) for label in d])
        for d, r in zip(joint.domains, releases, strict=True)
    ]
    return np.stack([m[drawn[:, a]] for a, m in enumerate(back)], axis=1).astype(np.int32)
