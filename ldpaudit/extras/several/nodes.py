"""The tree of a person's answers, and what a result says of each node."""

# A node is a private column of one release; the columns of one file; one column over releases; or
# everything of a person, whose parts are the columns over the releases, and the releases.

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from ldpaudit.audits.interface import Related
from ldpaudit.doors import AuditContext, InputError, Mechanism, Plan, Release
from ldpaudit.extras.several.files import ColumnReleases, FileColumns, Noise, ReleasedFiles
from ldpaudit.extras.several.person.answers import Answers, claimed_of
from ldpaudit.extras.several.related import Companions, OverReleases
from ldpaudit.mechanisms import UNKNOWN
from ldpaudit.mechanisms.joint import JointMechanism
from ldpaudit.pipeline.described import before_noise, claim_of, mechanism_info, release_info
from ldpaudit.receipt.found import Replay
from ldpaudit.release import DeclaredColumns
from ldpaudit.result import MechanismInfo, ReleaseInfo

_DRAWN: Final = {
    "fresh": "each with new noise",
    "remembered": "which repeat the answer for a label that did not change",
    None: "for which it is not known whether noise is new or answers are remembered",
}


@dataclass(frozen=True)
class Node:
    """A private column, or several answers of the same people."""

    kind: Literal["column", "columns", "releases", "person"]
    leaves: tuple[Release, ...]
    """Each private column of each release in it."""
    name: str
    sha256: str | None
    """Of several files that of theirs, a line for each, for waivers."""
    people: int
    """Rows of a file; of several files the people who are in one of them."""
    key: str = ""
    """Which part of a tree it is; empty for the root."""
    epsilon: float | None = None
    """What is claimed of all its answers, in nats; of a column see its claim."""
    columns: tuple["Node", ...] = ()
    """Its parts by column."""
    releases: tuple["Node", ...] = ()
    """Its parts by release."""
    declared: DeclaredColumns | None = None
    """All private columns that the files declare, where some are not audited."""
    noise: Noise | None = None
    """What is claimed of the noise of several releases."""
    related: Related | None = None
    """The other columns of the file, or the other releases."""
    files: ReleasedFiles | None = None
    """Of everything of a person."""
    replays: tuple[Replay, ...] = ()
    """What drawing the noise of each of its releases again found; empty where one was not tried."""

    @property
    def parts(self) -> tuple["Node", ...]:
        """Its columns and its releases."""
        return (*self.columns, *self.releases)

    @property
    def size(self) -> int:
        """How many nodes it is with all below it."""
        return 1 + sum(part.size for part in self.parts)

    @property
    def knows_truth(self) -> bool:
        """Whether the true labels of all its answers are known."""
        return all(leaf.truth is not None for leaf in self.leaves)

    @property
    def prior_epsilon(self) -> float:
        """What the private histograms of its files cost together, in nats, as they declare."""
        if self.releases:
            return math.fsum(release.prior_epsilon for release in self.releases)
        # Each column states what those of its whole file cost.
        files = self.leaves if self.kind == "releases" else self.leaves[:1]
        return math.fsum(leaf.prior_epsilon for leaf in files)

    @property
    def joint(self) -> JointMechanism | None:
        """What is claimed of all columns of a file; None where nothing is."""
        return self.related.claim if isinstance(self.related, Companions) else None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its private columns."""
        return tuple(dict.fromkeys(leaf.label for leaf in self.leaves))

    @property
    def drawn_jointly(self) -> bool:
        """Whether one mechanism drew several columns of a file."""
        own = self.joint is not None and not self.joint.independent
        return own or any(part.drawn_jointly for part in self.releases)

    @property
    def adds_up(self) -> bool:
        """Whether all that is claimed of a person is claimed of columns over several releases."""
        over = {column.leaves[-1].label for column in self.columns}
        return not self.drawn_jointly and over >= set(self.names)


def with_replays(node: Node, replays: Sequence[Replay | None]) -> Node:
    """Return a tree with what drawing the noise of each of its releases again found."""
    every = tuple(one for one in replays if one is not None)
    whole = replace(node, replays=every if len(every) == len(replays) else ())
    if node.kind == "column":
        own = tuple(one.of(node.leaves[0].label) for one in whole.replays)
        return replace(node, replays=own)
    releases = tuple(
        with_replays(part, [one]) for part, one in zip(node.releases, replays, strict=False)
    )
    if node.kind == "columns":
        columns = tuple(with_replays(part, replays) for part in node.columns)
        return replace(whole, columns=columns)
    columns = tuple(_over_replays(part, node.releases, replays) for part in node.columns)
    return replace(whole, releases=releases, columns=columns)


def _over_replays(column: Node, releases: Sequence[Node], replays: Sequence[Replay | None]) -> Node:
    label = column.leaves[-1].label
    held = [one for part, one in zip(releases, replays, strict=True) if label in part.names]
    known = [one.of(label) for one in held if one is not None]
    return replace(column, replays=tuple(known) if len(known) == len(held) else ())


def node_of(release: Release | FileColumns, key: str = "") -> Node:
    """Return the tree of one file."""
    known: dict[str, Any] = {"key": key, "declared": release.declared}
    named = release.name, release.sha256, len(release)
    if isinstance(release, Release):
        return Node("column", (release,), *named, **known)
    joint = claimed_of(release)
    # Where draws go together a released column depends on the others, and its claim does not.
    apart = joint is None or joint.independent
    columns = []
    for place, column in enumerate(release.columns):
        own = node_of(column if apart else release.alone(place), f"column-{place + 1}")
        columns.append(replace(own, related=Companions(release, place, joint)))
    known |= {"columns": tuple(columns), "related": columns[0].related}
    epsilon = None if joint is None else joint.epsilon
    return Node("columns", release.columns, *named, epsilon=epsilon, **known)


def nodes_of(files: ReleasedFiles, noise: Noise | None = None) -> Node:
    """Return the tree of several files of the same people."""
    # Raise InputError if answers are claimed to be remembered and the claims differ.
    releases = tuple(node_of(one, f"release-{at}") for at, one in enumerate(files.files, 1))
    columns = tuple(
        _over(of, noise, f"column-{place}") for place, of in enumerate(files.columns.values(), 1)
    )
    declared = _declared(releases, noise)
    if all(release.kind == "column" for release in releases):
        return replace(columns[0], key="", releases=releases, declared=declared)
    leaves = tuple(leaf for release in releases for leaf in release.leaves)
    node = Node(
        "person",
        leaves,
        " + ".join(file.name for file in files.files),
        _digest([file.sha256 for file in files.files]),
        len(files.rows),
        columns=columns,
        releases=releases,
        declared=declared,
        noise=noise,
        files=files,
    )
    return replace(node, epsilon=everything(node, epsilon_of))


def _over(releases: ColumnReleases, noise: Noise | None, key: str) -> Node:
    """Return one column over releases."""
    leaves, related = releases.releases, OverReleases(releases, noise)
    answers = Answers.of(AuditContext(leaves[-1], claim_of(leaves[-1]), Plan(0), related))
    if noise == "remembered" and not answers.alike:
        raise InputError(
            "Answers can only be remembered (--answers remembered) where all releases declare the "
            "same mechanism, with the same ε and classes. Here they do not."
        )
    return Node(
        "releases",
        leaves,
        " + ".join(one.name for one in leaves),
        _digest([one.sha256 for one in leaves]),
        len(releases.rows),
        key,
        answers.epsilon(noise),
        noise=noise,
        related=related,
    )


def _digest(digests: Sequence[str | None]) -> str | None:
    if None in digests:
        return None
    return hashlib.sha256("".join(f"{one}\n" for one in digests).encode()).hexdigest()


def epsilon_of(node: Node) -> float | None:
    """Return what is claimed of a node, in nats."""
    return claim_of(node.leaves[0]).epsilon if node.kind == "column" else node.epsilon


def everything(node: Node, of: Callable[[Node], float | None]) -> float | None:
    """Return what is claimed of everything of a person, in nats; ``of``: of one of its parts."""
    # Columns with noise of their own add up, each over the releases; one mechanism for several
    # columns counts by its own ε, once for each release or, remembered, once for each set of
    # columns.
    each = [of(release) for release in node.releases]
    if node.drawn_jointly and node.noise == "remembered":
        sets: dict[frozenset[str], list[float | None]] = {}
        for release, epsilon in zip(node.releases, each, strict=True):
            sets.setdefault(frozenset(release.names), []).append(epsilon)
        return _sum([_largest(some) for some in sets.values()])
    if node.drawn_jointly:
        return _sum(each)
    over = {column.leaves[-1].label for column in node.columns}
    alone = (node_of(leaf) for leaf in node.leaves if leaf.label not in over)
    return _sum([of(column) for column in (*node.columns, *alone)])


def _declared(files: Sequence[Node], noise: Noise | None) -> DeclaredColumns | None:
    """Return what files declare of a person together; None where all columns are audited."""
    # What was drawn together counts once for each file or, remembered, once.
    if all(file.declared is None for file in files):
        return None
    claims: dict[tuple[str, ...], list[float | None]] = {}
    for file in files:
        for names, epsilon in (file.declared or _audited(file)).claims.items():
            claims.setdefault(names, []).append(epsilon)
    together = _largest if noise == "remembered" else _sum
    return DeclaredColumns({names: together(each) for names, each in claims.items()})


def _audited(file: Node) -> DeclaredColumns:
    """Return what a file declares of which all columns are audited."""
    if file.drawn_jointly:
        return DeclaredColumns({file.names: file.epsilon})
    return DeclaredColumns({(leaf.label,): claim_of(leaf).epsilon for leaf in file.leaves})


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None


def _largest(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if len(known) == len(values) else None


def tree_info(node: Node) -> ReleaseInfo:
    """Return what was audited."""
    first = node.leaves[0]
    if node.kind == "column":
        return release_info(first)
    private = frozenset[str]() if node.related is None else node.related.private
    parts = [tree_info(part) for part in node.parts]
    one = node.kind == "releases"
    features, classes = first.features.columns, len(first.classes)
    if node.kind == "columns":
        features = max(features - (len(node.leaves) - 1), 0)
        classes = math.prod(len(leaf.classes) for leaf in node.leaves)
    elif parts:
        features = max(part.features for part in parts)
        classes = classes if one else max(part.classes for part in parts)
    return ReleaseInfo(
        name=node.name,
        sha256=node.sha256,
        rows=node.people,
        features=features,
        classes=classes,
        class_names=tuple(map(str, first.classes)) if one else (),
        label=first.label if one else None,
        truth=node.knows_truth,
        before=before_noise(first, private) if node.kind == "columns" else None,
    )


def claim_info(
    node: Node, claim: Mechanism | JointMechanism | None, epsilon: float | None
) -> MechanismInfo:
    """Return what was claimed: of one column, or of all answers together."""
    first = node.leaves[0]
    source = None if first.declaration is None else first.declaration.source
    if node.kind in ("releases", "person"):
        files = len(node.releases or node.leaves)
        return MechanismInfo(
            name="repeated",
            parameters={} if node.noise is None else {"answers": node.noise},
            description=f"{files} releases of the same people, {_DRAWN[node.noise]}",
            epsilon=epsilon,
            declared=source,
        )
    if claim is not None:
        return mechanism_info(first, claim, epsilon)
    text = "nothing is claimed about the columns together"
    return MechanismInfo(
        name=UNKNOWN, parameters={}, description=text, epsilon=epsilon, declared=source
    )
