"""A vector as its audit sees it: codes of all columns, their claimed channels, rows that count."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeVar

import numpy as np

from ldpaudit.audits.assumptions.rows import counted
from ldpaudit.audits.assumptions.standing import standing
from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.mechanism.evidence import feature_dependence
from ldpaudit.audits.part import rows_looked_at
from ldpaudit.mechanisms import from_declaration
from ldpaudit.mechanisms.capabilities import LabelByStratum
from ldpaudit.mechanisms.joint import JointMechanism, OnDomains
from ldpaudit.release import FloatArray, IndexArray, IntArray, ReleasedVector
from ldpaudit.result import Kind

MOST_ROWS: Final = 1 << 21
"""Of a larger release so many rows are looked at, drawn blind to all labels."""
MOST_PAIRS: Final = 30
"""Pairs of columns that are looked at together."""
Whole = TypeVar("Whole", IntArray, IndexArray)


@dataclass(frozen=True, eq=False)
class SeenColumns:
    """Several private columns with what is claimed of each.

    Attributes
    ----------
    contexts : tuple of AuditContext, length d
        One for each column, without the other columns among its features.
    joint : JointMechanism or None
        What is claimed of all; None where nothing is.
    rows : int64 array or None
        The rows that bounds may count: of rows that share noise one; None for all.
    """

    contexts: tuple[AuditContext, ...]
    joint: JointMechanism | None
    rows: IndexArray | None

    @classmethod
    def of(
        cls, vector: ReleasedVector, joint: JointMechanism | None, context: AuditContext
    ) -> "SeenColumns":
        """See a vector; ``context`` lends its plan, progress and stop."""
        contexts, some = [], rows_looked_at(len(vector), context.plan.seed, MOST_ROWS)
        columns = [vector.alone(place) for place in range(len(vector.columns))]
        columns = columns if some is None else [column.take(some) for column in columns]
        for column in columns:
            claim = from_declaration(column.declaration, column.classes)
            contexts.append(replace(context, release=column, claim=claim, whole=None, _shared={}))
        return cls(tuple(contexts), joint, _counted(contexts))

    @property
    def independent(self) -> bool:
        """Whether the columns' draws are claimed to be independent, or nothing else is claimed."""
        return self.joint is None or self.joint.independent

    @property
    def knows_truth(self) -> bool:
        """Whether the true labels of all columns are known."""
        return all(one.release.truth is not None for one in self.contexts)

    @cached_property
    def released(self) -> IntArray:
        """Output codes of the rows that count, int32 of shape (r, d)."""
        columns = [self._taken(one.release.released) for one in self.contexts]
        return np.stack(columns, axis=1)

    @cached_property
    def truth(self) -> IntArray:
        """True codes of the rows that count, int32 of shape (r, d)."""
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

    def within_strata(self) -> Iterator["SeenColumns"]:
        """Yield the vector of each stratum as one of its own; itself where there are none."""
        if all(one.release.strata is None for one in self.contexts):
            yield self
            return
        for code in np.unique(self._every_stratum):
            rows = np.flatnonzero(self._every_stratum == code)
            contexts = tuple(_in_stratum(one, rows) for one in self.contexts)
            yield SeenColumns(contexts, self.joint, _counted(contexts))

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
        for place, one in enumerate(self.contexts, 1):
            reason = feature_dependence(one)
            if reason is not None and one.release.strata is None:
                return f"column {place}: {reason}"
        return None

    def matrices(self, place: int) -> FloatArray | None:
        """Return a column's claimed channel in each of its strata, float64 (s, k, m), or None."""
        one = self.contexts[place]
        if isinstance(one.claim, LabelByStratum) and one.release.strata is not None:
            return _aligned(one.claim, one)
        channel = aligned_channel(one)
        return None if channel is None else channel.matrix[None]

    def channel(self, place: int, row: int) -> FloatArray | None:
        """Return a column's claimed channel for a counted row, float64 (k, m), or None."""
        matrices = self.matrices(place)
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
        """Draw a release of the counted rows as claimed, int32 (r, d); None without a claim."""
        if isinstance(self.joint, OnDomains):
            return _drawn(self.joint, self, rng)
        columns = []
        for place in range(len(self.contexts)):
            matrices = self.matrices(place)
            if matrices is None:
                return None
            rows = matrices[self.strata_of(place), self.truth[:, place]]
            columns.append(draw(rows, rng))
        return np.stack(columns, axis=1)

    def standing(self, *assumptions: str) -> tuple[Kind, tuple[str, ...]]:
        """Return the kind of a bound, and its assumptions, those refuted of a column marked."""
        found = [standing(one, *assumptions) for one in self.contexts]
        marked = next((f for f in found if f[0] != "certified"), found[0])
        return marked

    def _taken(self, values: Whole) -> Whole:
        return values if self.rows is None else values[self.rows]


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
    return replace(context, release=release, claim=claim, beside=None, _shared={})


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


def _drawn(joint: OnDomains, seen: SeenColumns, rng: np.random.Generator) -> IntArray:
    """Draw from a joint mechanism, whose domains may be in another order than the labels here."""
    drawn = joint.sample(seen.in_domains(seen.truth, seen.released)[0], rng)
    releases = [one.release for one in seen.contexts]
    back = [
        np.array([r.outputs.index(label) for label in d])
        for d, r in zip(joint.domains, releases, strict=True)
    ]
    return np.stack([m[drawn[:, a]] for a, m in enumerate(back)], axis=1).astype(np.int32)
