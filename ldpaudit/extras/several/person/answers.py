"""Several answers of each person as their audits see them: one table of codes, and what is claimed.

Rows are people; an answer is a private column of one release, or a release of one column.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Final

import numpy as np

from ldpaudit.arrays import Label
from ldpaudit.audits.assumptions.rows import counted
from ldpaudit.audits.assumptions.standing import standing
from ldpaudit.audits.models import feature_dependence
from ldpaudit.doors import (
    AuditContext,
    FloatArray,
    IndexArray,
    IntArray,
    OnDomains,
    Release,
    aligned_channel,
    from_declaration,
)
from ldpaudit.extras.several.files import ColumnReleases, FileColumns, Noise
from ldpaudit.extras.several.related import Companions, OverReleases
from ldpaudit.mechanisms.capabilities import LabelByStratum
from ldpaudit.mechanisms.channel import largest_log_ratios
from ldpaudit.mechanisms.joint import JointMechanism
from ldpaudit.mechanisms.joint import from_declaration as joint_from_declaration
from ldpaudit.result import Kind
from ldpaudit.work.memory import rows_looked_at

EPSILON: Final = "person.epsilon"
# Of a larger release so many rows are looked at, drawn blind to all labels.
MOST_ROWS_LOOKED_AT: Final = 1 << 21
# Of more releases only neighbours are compared.
_ALL_PAIRS: Final = 12


@dataclass(frozen=True, eq=False)
class Answers:
    """Several answers of each person, with what is claimed of each."""

    contexts: tuple[AuditContext, ...]
    """One for each answer; a column's is without the other columns among its features."""
    joint: JointMechanism | None = None
    """What is claimed of all columns."""
    joined: ColumnReleases | None = None
    """Where answers are releases of one column: whose each row is. Columns share their rows."""
    noise: Noise | None = None
    """What is claimed of the noise of releases."""

    @classmethod
    def of(cls, context: AuditContext) -> "Answers":
        """Return the answers of a context, which lends its plan, progress and stop."""
        related = context.related
        if isinstance(related, OverReleases):
            contexts = _contexts(related.releases.releases, context)
            return cls(contexts, None, related.releases, related.noise)
        assert isinstance(related, Companions)
        file = related.file
        some = rows_looked_at(len(file), context.plan.seed, MOST_ROWS_LOOKED_AT)
        columns = [file.alone(place) for place in range(len(file.columns))]
        columns = columns if some is None else [column.take(some) for column in columns]
        return cls(_contexts(columns, context), claimed_of(file))

    @property
    def context(self) -> AuditContext:
        """The context of the last answer, whose plan all share."""
        return self.contexts[-1]

    @property
    def alpha(self) -> float:
        """The error probability of one bound."""
        return 1 - self.context.plan.confidence

    @property
    def kind(self) -> str:
        """What the answers are: "columns" or "releases"."""
        return "columns" if self.joined is None else "releases"

    @property
    def independent(self) -> bool:
        """Whether the columns' draws are claimed to be independent, or nothing else is claimed."""
        return self.joint is None or self.joint.independent

    @property
    def knows_truth(self) -> bool:
        """Whether the true labels of all answers are known."""
        return all(one.release.truth is not None for one in self.contexts)

    @cached_property
    def rows(self) -> IndexArray:
        """The row of each person in each answer's release, int64 (p, d); −1 where there is none."""
        if self.joined is not None:
            return self.joined.rows
        own = np.arange(len(self.context.release))[:, None]
        return np.broadcast_to(own, (len(own), len(self.contexts)))

    def labels_of(self, place: int) -> tuple[tuple[Label, ...], tuple[Label, ...]]:
        """Return the true and the released labels that codes of an answer stand for."""
        if self.joined is not None:
            return self.joined.classes, self.joined.outputs
        release = self.contexts[place].release
        return release.classes, release.outputs

    @cached_property
    def truth(self) -> IntArray:
        """True codes, int32 of shape (p, d); −1 where a person has no such answer."""
        return self._table([one.truth for one in self.contexts], "classes")

    @cached_property
    def released(self) -> IntArray:
        """Released codes, int32 of shape (p, d); −1 where a person has no such answer."""
        return self._table([one.release.released for one in self.contexts], "outputs")

    def _table(self, codes: Sequence[IntArray], names: str) -> IntArray:
        table = np.full(self.rows.shape, -1, dtype=np.int32)
        for place, (one, context) in enumerate(zip(codes, self.contexts, strict=True)):
            common = self.labels_of(place)[names == "outputs"]
            own = np.array([common.index(label) for label in getattr(context.release, names)])
            here = self.rows[:, place] >= 0
            table[here, place] = own[one[self.rows[here, place]]]
        return table

    def people(self, places: Sequence[int] | None = None) -> IndexArray:
        """Return the people who have all of some answers; default: of all."""
        rows = self.rows if places is None else self.rows[:, list(places)]
        return np.flatnonzero((rows >= 0).all(axis=1))

    @cached_property
    def counted(self) -> IndexArray:
        """The people with all answers whom bounds count: of those who share noise, one."""
        people = self.people()
        for place, one in enumerate(self.contexts):
            rows = counted(one).rows
            if rows is not None:
                people = people[np.isin(self.rows[people, place], rows)]
        return people

    @cached_property
    def bounded(self) -> IndexArray:
        """The counted people who bound ε: of releases those whose true label stays the same."""
        if self.joined is None:
            return self.counted
        truth = self.truth[self.counted]
        return np.asarray(self.counted[(truth == truth[:, :1]).all(axis=1)])

    @cached_property
    def strata(self) -> IndexArray:
        """Codes of people whose answers all have the same channels, int64 of shape (p,)."""
        codes = np.zeros(len(self.rows), np.int64)
        for one in self.contexts if self.joined is None else ():
            if one.release.strata is not None:
                both = codes * one.release.strata.count + one.release.strata.codes
                codes = np.unique(both, return_inverse=True)[1].astype(np.int64)
        return codes

    def within_strata(self) -> Iterator["Answers"]:
        """Yield the columns of each stratum; themselves where there are none."""
        if all(one.release.strata is None for one in self.contexts):
            yield self
            return
        for code in np.unique(self.strata):
            rows, contexts = np.flatnonzero(self.strata == code), []
            for one in self.contexts:
                strata, claim = one.release.strata, one.claim
                if strata is not None:
                    claim = claim.by_stratum[strata.codes[rows[0]]]
                release = replace(one.release.take(rows), strata=None)
                contexts.append(one.of(release, claim=claim))
            yield Answers(tuple(contexts), self.joint)

    @property
    def same_labels(self) -> list[bool]:
        """Whether an answer's codes of labels and outputs stand for the same values."""
        labels = map(self.labels_of, range(len(self.contexts)))
        return [
            one.release.numeric is None and classes == outputs[: len(classes)]
            for one, (classes, outputs) in zip(self.contexts, labels, strict=True)
        ]

    def refusal(self) -> str | None:
        """Return why no bound holds for the claims, None where bounds do."""
        for number, one in enumerate(self.contexts, 1):
            reason, which = feature_dependence(one), f"release {number}"
            if self.joined is None:
                which = f"column {one.release.label!r}"
                reason = None if one.release.strata is not None else reason
            elif reason is None and one.release.strata is not None:
                reason = "its channel differs from stratum to stratum"
            if reason is not None:
                return f"{which}: {reason}"
        return None

    def channels_of(self, place: int) -> FloatArray | None:
        """Return an answer's claimed channel in each of its strata, float64 (s, k, m), or None."""
        one = self.contexts[place]
        claim = one.claim.offers(LabelByStratum)
        if claim is not None and one.release.strata is not None:
            own, (known, named) = claim.matrices, (claim.classes, claim.outputs)
        else:
            channel = aligned_channel(one)
            if channel is None:
                return None
            own, known, named = channel.matrix[None], channel.classes, channel.outputs
            if self.joined is None:
                return own
        classes, outputs = self.labels_of(place)
        matrices = np.zeros((len(own), len(classes), len(outputs)))
        columns = [outputs.index(label) for label in named]
        matrices[:, :, columns] = own[:, [known.index(label) for label in classes]]
        return matrices

    def stratum_of(self, place: int) -> IntArray:
        """Return the stratum of each person in one answer; 0 where it has none."""
        strata = self.contexts[place].release.strata
        return np.zeros(len(self.rows), np.int32) if strata is None else strata.codes

    @cached_property
    def matrices(self) -> list[FloatArray] | None:
        """The releases' claimed channels on common labels, (k, m) each; None if one has none."""
        found = [
            None if one.release.strata is not None else self.channels_of(place)
            for place, one in enumerate(self.contexts)
        ]
        known = [channels[0] for channels in found if channels is not None]
        return known if len(known) == len(found) else None

    @cached_property
    def alike(self) -> bool:
        """Whether all releases have the same claimed channel, or the same declaration."""
        if self.matrices is None:
            first, *others = [(c.claim.name, dict(c.claim.declaration())) for c in self.contexts]
            return all(first == other for other in others)
        return all(np.allclose(self.matrices[0], other, atol=1e-9) for other in self.matrices)

    def epsilon(self, noise: Noise | None) -> float | None:
        """Return the claimed ε of all answers in nats; None where they have none."""
        # Of releases with either noise; where nothing is claimed of it, that of fresh noise, the
        # larger of the two.
        if self.joined is None:
            return None if self.joint is None else self.joint.epsilon
        if noise == "remembered":
            return self.contexts[0].claim.epsilon if self.alike else None
        numbers = any(one.release.numeric is not None for one in self.contexts)
        if self.matrices is not None and not numbers:
            ratios = [largest_log_ratios(matrix) for matrix in self.matrices]
            return float(np.sum(ratios, axis=0).max())
        known = [e for e in (one.claim.epsilon for one in self.contexts) if e is not None]
        return float(sum(known)) if len(known) == len(self.contexts) else None

    @property
    def domains(self) -> OnDomains | None:
        """The joint mechanism, where it is one on the product of the columns' domains."""
        return None if self.joint is None else self.joint.on_domains

    def in_domains(self, labels: IntArray, outputs: IntArray) -> tuple[IntArray, IntArray]:
        """Return true and released codes (r, d) in the order of the joint mechanism's domains."""
        assert self.domains is not None
        found = labels.astype(np.int32), outputs.astype(np.int32)
        for place, domain in enumerate(self.domains.domains):
            for codes, own in zip(found, self.labels_of(place), strict=True):
                codes[:, place] = np.array([domain.index(one) for one in own])[codes[:, place]]
        return found

    def simulated(self, rng: np.random.Generator) -> IntArray | None:
        """Draw answers of the people who bound ε as claimed, int32 (r, d); None without a claim."""
        people, drawn = self.bounded, list[IntArray]()
        truth = self.truth[people]
        if self.domains is not None:
            codes = self.domains.sample(self.in_domains(truth, self.released[people])[0], rng)
            for place, domain in enumerate(self.domains.domains):
                back = np.array([self.labels_of(place)[1].index(label) for label in domain])
                drawn.append(back[codes[:, place]].astype(np.int32))
            return np.stack(drawn, axis=1)
        for place in range(len(self.contexts)):
            if self.noise == "remembered" and drawn:
                drawn.append(drawn[0])
                continue
            matrices = self.channels_of(place)
            if matrices is None or (self.joined is not None and self.matrices is None):
                return None
            laws = np.cumsum(matrices[self.stratum_of(place)[people], truth[:, place]], axis=1)
            above = rng.random((len(people), 1)) > laws[:, :-1]
            drawn.append(np.asarray(above.sum(axis=1), dtype=np.int32))
        return np.stack(drawn, axis=1)

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of releases that are compared."""
        places = range(len(self.contexts))
        return list(combinations(places, 2)) if len(places) <= _ALL_PAIRS else self.neighbours

    @cached_property
    def successive(self) -> list[tuple[int, int, IndexArray]]:
        """Pairs of releases with the people who are in both, and in none between the two.

        So each release of a person is compared with the latest earlier one that has the person.
        """
        places = np.where(self.rows >= 0, np.arange(len(self.contexts)), -1)
        found = list[tuple[int, int, IndexArray]]()
        for b in range(1, len(self.contexts)):
            latest = np.where(places[:, b] < 0, -1, places[:, :b].max(axis=1))
            each = ((a, b, np.flatnonzero(latest == a)) for a in range(b))
            found += [one for one in each if len(one[2])]
        return found

    @property
    def neighbours(self) -> list[tuple[int, int]]:
        """Each release and the next one."""
        return list(pairwise(range(len(self.contexts))))

    def standing(self, *assumptions: str) -> tuple[Kind, tuple[str, ...]]:
        """Return the kind of a bound, and its assumptions, those refuted of an answer marked."""
        found = [standing(one, *assumptions) for one in self.contexts]
        return next((f for f in found if f[0] != "certified"), found[0])


def claimed_of(file: FileColumns) -> JointMechanism | None:
    """Return what is claimed of all columns, None where nothing was declared."""
    if file.declaration is None:
        return None
    return joint_from_declaration(file.declaration, [one.classes for one in file.columns])


def _contexts(releases: Sequence[Release], context: AuditContext) -> tuple[AuditContext, ...]:
    return tuple(
        context.of(one, claim=from_declaration(one.declaration, one.classes)) for one in releases
    )
