"""The tree of a person's answers: private columns, the columns of a file, files of several years.

Each node has audits of its own, a claimed ε, and parts: columns, releases, or both.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

from ldpaudit.audits.interface import AuditContext, Companions, OverReleases, Plan
from ldpaudit.audits.person.answers import Answers, claimed_of
from ldpaudit.audits.person.claimed import claimed_epsilon
from ldpaudit.errors import InputError
from ldpaudit.estimators.person.evidence import Noise
from ldpaudit.mechanisms import Mechanism, from_declaration
from ldpaudit.mechanisms.joint import JointMechanism
from ldpaudit.release import DeclaredColumns, FileColumns, Release, ReleasedFiles


@dataclass(frozen=True)
class Column:
    """A private column of one release; ``companions``: the others of its file."""

    release: Release
    key: str = ""
    companions: Companions | None = None

    @property
    def columns(self) -> tuple["Node", ...]:
        """No parts."""
        return ()

    releases = columns

    @property
    def claim(self) -> Mechanism:
        """What is claimed."""
        return from_declaration(self.release.declaration, self.release.classes)

    @property
    def epsilon(self) -> float | None:
        """Its ε, in nats."""
        return self.claim.epsilon

    @property
    def declared(self) -> DeclaredColumns | None:
        """All private columns that the file declares, where some are not audited."""
        return self.release.declared

    @property
    def leaves(self) -> tuple[Release, ...]:
        """The private columns that are audited."""
        return (self.release,)


@dataclass(frozen=True)
class Columns:
    """Several private columns of one file."""

    file: FileColumns
    key: str = ""

    @cached_property
    def joint(self) -> JointMechanism | None:
        """What is claimed of all columns; None where nothing is."""
        return claimed_of(self.file)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Each column."""
        # Where draws go together a released column depends on the others, and its claim does not.
        apart = self.joint is None or self.joint.independent
        return tuple(
            Column(
                column if apart else self.file.alone(place),
                f"column-{place + 1}",
                Companions(self.file, place, self.joint),
            )
            for place, column in enumerate(self.file.columns)
        )

    @property
    def releases(self) -> tuple["Node", ...]:
        """None: it is one release."""
        return ()

    @property
    def epsilon(self) -> float | None:
        """What is claimed of all columns together, in nats."""
        return None if self.joint is None else self.joint.epsilon

    @property
    def declared(self) -> DeclaredColumns | None:
        """All private columns that the file declares, where some are not audited."""
        return self.file.declared

    @property
    def leaves(self) -> tuple[Release, ...]:
        """The private columns that are audited."""
        return self.file.columns

    def context(self, context: AuditContext) -> AuditContext:
        """Return what its audits are given; ``context`` lends plan, progress and stop."""
        first, claim = self.file.columns[0], self.columns[0].claim
        companions = Companions(self.file, 0, self.joint)
        return replace(context, release=first, claim=claim, companions=companions, _shared={})


@dataclass(frozen=True)
class Releases:
    """One private column in several releases; ``held``: those releases, where they are parts."""

    over: OverReleases
    key: str = ""
    held: tuple[Column, ...] = ()

    @property
    def columns(self) -> tuple["Node", ...]:
        """None: it is one column."""
        return ()

    @property
    def releases(self) -> tuple[Column, ...]:
        """Each release."""
        return self.held

    @property
    def noise(self) -> Noise | None:
        """What is claimed of the noise."""
        return self.over.noise

    @cached_property
    def epsilon(self) -> float | None:
        """What is claimed of all releases, in nats (InputError where the claim contradicts)."""
        seen = Answers.of(self.context(_lent(self.over)))
        if self.over.noise == "remembered" and not seen.alike:
            raise InputError(
                "Answers can only be remembered (--answers remembered) where all releases declare "
                "the same mechanism, with the same ε and classes. Here they do not."
            )
        return claimed_epsilon(seen, self.over.noise)

    @property
    def declared(self) -> DeclaredColumns | None:
        """What the files declare of a person, where not all columns are audited."""
        return _declared(self.held, self.over.noise)

    @property
    def leaves(self) -> tuple[Release, ...]:
        """The releases of the column."""
        return self.over.releases.releases

    def context(self, context: AuditContext) -> AuditContext:
        """Return what its audits are given; ``context`` lends plan, progress and stop."""
        last = self.over.releases.releases[-1]
        claim = from_declaration(last.declaration, last.classes)
        return replace(context, release=last, claim=claim, over=self.over, _shared={})


def _lent(over: OverReleases) -> AuditContext:
    last = over.releases.releases[-1]
    return AuditContext(last, from_declaration(last.declaration, last.classes), Plan(0))


@dataclass(frozen=True)
class Files:
    """Several files of the same people, of which one at least has several private columns."""

    files: ReleasedFiles
    noise: Noise | None = None
    key: str = ""

    @cached_property
    def releases(self) -> tuple["Column | Columns", ...]:
        """Each file."""
        return tuple(_file(one, place) for place, one in enumerate(self.files.files, start=1))

    @cached_property
    def columns(self) -> tuple[Releases, ...]:
        """Each column that is in several files, over them."""
        return tuple(
            Releases(OverReleases(releases, self.noise), f"column-{place}")
            for place, releases in enumerate(self.files.columns.values(), start=1)
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all private columns."""
        return tuple(dict.fromkeys(one.label for one in self.leaves))

    @cached_property
    def epsilon(self) -> float | None:
        """What is claimed of everything that was released of a person, in nats.

        Columns with noise of their own add up, each over the releases; one mechanism for several
        columns counts by its own ε, once for each release or, remembered, once for each set of
        columns.
        """
        each = [file.epsilon for file in self.releases]
        if any(
            isinstance(f, Columns) and f.joint and not f.joint.independent for f in self.releases
        ):
            if self.noise == "remembered":
                names = [frozenset(x.label for x in file.leaves) for file in self.releases]
                alike = [
                    [e for e, of in zip(each, names, strict=True) if of == n] for n in {*names}
                ]
                return _sum([None if None in es else max(e or 0.0 for e in es) for es in alike])
            return _sum(each)
        over = self.files.columns.keys()
        alone = [Column(one).epsilon for one in self.leaves if one.label not in over]
        return _sum([*(column.epsilon for column in self.columns), *alone])

    @property
    def declared(self) -> DeclaredColumns | None:
        """What the files declare of a person, where not all columns are audited."""
        return _declared(self.releases, self.noise)

    @property
    def leaves(self) -> tuple[Release, ...]:
        """Each private column of each file."""
        return tuple(leaf for file in self.releases for leaf in file.leaves)


Node = Column | Columns | Releases | Files


def nodes_of(files: ReleasedFiles, noise: Noise | None = None) -> Releases | Files:
    """Return the tree of several files of the same people."""
    if not all(isinstance(one, Release) for one in files.files):
        return Files(files, noise)
    (releases,) = files.columns.values()
    held = tuple(
        Column(one, f"release-{place}") for place, one in enumerate(releases.releases, start=1)
    )
    return Releases(OverReleases(releases, noise), held=held)


def node_of(release: Release | FileColumns) -> Column | Columns:
    """Return the tree of one file."""
    return Columns(release) if isinstance(release, FileColumns) else Column(release)


def _file(release: Release | FileColumns, place: int) -> Column | Columns:
    return replace(node_of(release), key=f"release-{place}")


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None


def _declared(files: tuple["Column | Columns", ...], noise: Noise | None) -> DeclaredColumns | None:
    """Return what files declare of a person together; None where all columns are audited."""
    left = [file.declared for file in files if file.declared is not None]
    if not left:
        return None
    each = [f.epsilon if f.declared is None else f.declared.epsilon for f in files]
    count = max(one.count for one in left)
    if noise == "remembered":
        return DeclaredColumns(count, None if None in each else max(one or 0.0 for one in each))
    return DeclaredColumns(count, _sum(each))
