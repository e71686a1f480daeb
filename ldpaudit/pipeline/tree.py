"""One audit of a tree of a person's answers: of every part first, then of the node itself."""

import datetime
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

import ldpaudit
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.listing import OF_COLUMNS, OF_SEVERAL
from ldpaudit.audits.person.everything import draws_between, person_finding
from ldpaudit.audits.person.words import odd_words
from ldpaudit.audits.running import prepared, run_one
from ldpaudit.errors import InputError
from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.node import NodeCase, judge_node, shared
from ldpaudit.judging.node_words import Words
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.judging.waivers import unused_waivers
from ldpaudit.pipeline.about import digest_of, node_info, node_mechanism_info, run_info
from ldpaudit.pipeline.choosing import chosen_audits
from ldpaudit.pipeline.claim import pinned
from ldpaudit.pipeline.nodes import Column, Columns, Files, Node, Releases
from ldpaudit.pipeline.one_release import advisable, run_audit
from ldpaudit.pipeline.public import public_facts_of
from ldpaudit.randomness import child_generator
from ldpaudit.result import AuditRecord, AuditResult, Finding, Note, together
from ldpaudit.running.finished import Finished
from ldpaudit.running.progress import NoProgress, Progress
from ldpaudit.running.stopping import Stop, Watched
from ldpaudit.tasks import Tasks, Threads

_NOT_JOINT: Final = "the released columns do not follow the joint mechanism that is declared"
_TOGETHER: Final = (
    "the noise of one column goes along with another's, so the columns were not drawn as declared"
)
_BETWEEN: Final = (
    "the noise of one column goes along with another's of another release, so they were not drawn "
    "as declared"
)
_NEITHER: Final = "answers of the releases are neither all new nor all remembered, as declared"


@dataclass(frozen=True)
class Running:
    """What all audits of a tree share: where and how long they work, and who is told.

    Attributes
    ----------
    progress : Progress
    command : str
        How to run it again, without paths or names.
    finished : Finished
        Where finished parts are kept.
    stop : Stop
    tasks : Tasks or None
    today : datetime.date or None
        Default: today, by UTC.
    """

    progress: Progress = field(default_factory=NoProgress)
    command: str = "ldpaudit.audit(…)"
    finished: Finished = field(default_factory=Finished)
    stop: Stop = field(default_factory=Stop)
    tasks: Tasks | None = None
    today: datetime.date | None = None

    def keywords(self) -> dict[str, Any]:
        """Return it as the keywords of :func:`~ldpaudit.pipeline.run_audit`."""
        return {part.name: getattr(self, part.name) for part in fields(self)}


def audit(
    node: Node,
    plan: Plan,
    policy: Policy | None = None,
    *,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    notes: tuple[Note, ...] = (),
    running: Running | None = None,
) -> AuditResult:
    """Audit every part of a tree and the tree itself, and judge them by a policy.

    The policy's error probability is shared in equal parts among all nodes, the budget of attacks
    and the time that is left among the columns.

    Parameters
    ----------
    node : Column, Columns, Releases or Files
    plan : Plan
        Where the policy pins the seed or the confidence, the policy wins.
    policy : Policy, optional
        Default: ``ldpaudit:default``.
    only, skip : collections of audit ids
        Which audits to run.
    notes : tuple of Note
        The warnings of the files' reader.
    running : Running, optional

    Raises
    ------
    InputError
        If a claim is not one that can be audited, or ``only``/``skip`` name no audit.
    PolicyError
        If no check of a column could run.
    """
    policy, running = policy or default_policy(), running or Running()
    if isinstance(node, Column):
        asked: dict[str, Any] = {"only": only, "skip": skip, "notes": notes}
        return run_audit(node.release, plan, policy, **asked, **running.keywords())
    chosen = chosen_audits(only, skip, {**OF_COLUMNS, **OF_SEVERAL})
    if chosen.keys() <= OF_SEVERAL.keys():
        what = "releases" if isinstance(node, Releases) else "columns"
        raise InputError(f"The {what} need an audit, too: add one, such as --only mechanism.")
    share = shared(policy, _size(node))
    plan = replace(pinned(plan, share), budget=plan.budget / _columns(node))
    running = replace(running, today=running.today or datetime.datetime.now(datetime.UTC).date())
    walk = _Walk(plan, policy, share, chosen, frozenset(only), frozenset(skip))
    return walk.audited(node, running, notes)[0]


@dataclass(frozen=True)
class _Walk:
    """What is the same at all nodes: the plan, the policy as given and its share for one node."""

    plan: Plan
    policy: Policy
    share: Policy
    chosen: Mapping[str, str]
    only: frozenset[str]
    skip: frozenset[str]

    def audited(
        self, node: Node, running: Running, notes: tuple[Note, ...] = ()
    ) -> tuple[AuditResult, Finding]:
        """Return the result of a node, which holds those of its parts, and what was found."""
        start = time.perf_counter()
        policy = self._policy(node)
        if isinstance(node, Column):
            return self._column(node, policy, running), Finding(())
        epsilon = node.epsilon  # A claim that contradicts itself is refused before any work.
        every = (*node.columns, *node.releases)
        found = [self._part(part, running, len(every) - place) for place, part in enumerate(every)]
        columns, releases = found[: len(node.columns)], found[len(node.columns) :]
        parts = tuple(result for result, _ in found)
        if isinstance(node, Files):
            called = [f"column {name}" for name in node.files.columns]
            over = dict(zip(called, (f for _, f in columns), strict=True))
            level = self.plan.confidence
            records: tuple[AuditRecord, ...] = ()
            draws = draws_between(node.files, child_generator(self.plan.seed, "person", "draws"))
            finding = person_finding(over, [f for _, f in releases], draws, epsilon, level)
        else:
            records, finding = self._own(node, running)
        sha256 = digest_of(node)
        evidence = Evidence.collect([finding])
        assert running.today is not None
        case = self._case(node, policy, epsilon, records, evidence)
        judgement = judge_node(case, parts, sha256=sha256, today=running.today)
        unused, parts = unused_waivers(parts, judgement.notes)
        result = AuditResult(
            ldpaudit_version=ldpaudit.__version__,
            verdict=judgement.verdict,
            sentence=judgement.sentence,
            next_steps=judgement.next_steps,
            date=running.today.isoformat(),
            release=node_info(node, parts, sha256),
            mechanism=node_mechanism_info(node, epsilon),
            estimates=finding.estimates,
            curves=finding.curves,
            histograms=finding.histograms,
            notes=(*notes, *finding.notes, *unused),
            checks=judgement.checks,
            families=judgement.families,
            audits=records,
            run=run_info(self.plan, running.command, time.perf_counter() - start, self.policy),
            public=public_facts_of(node, parts, epsilon, self.policy, running.today),
            labels=parts[: len(columns)],
            releases=parts[len(columns) :],
        )
        return result, finding

    def _policy(self, node: Node) -> Policy:
        """Return the share of the policy for a node, with what it allows to be declared there."""
        claim = self.policy.claim
        if claim is not None:
            one = isinstance(node, Columns) or node.key.startswith("release")
            claim = claim.of(everything=not node.key, one_release=one)
        return self.share.model_copy(update={"claim": claim})

    def _part(self, part: Node, running: Running, left: int) -> tuple[AuditResult, Finding]:
        """Return the result of a part, in its share of the time that is left."""
        running.progress.remark(f"{_called(part)}:")
        within = running.finished.within(part.key)
        with running.stop.share(left):
            return self.audited(part, replace(running, finished=within))

    def _column(self, node: Column, policy: Policy, running: Running) -> AuditResult:
        return run_audit(
            node.release,
            self.plan,
            policy,
            only=self.only - OF_SEVERAL.keys(),
            skip=self.skip - OF_SEVERAL.keys(),
            companions=node.companions,
            **running.keywords(),
        )

    def _own(
        self, node: Columns | Releases, running: Running
    ) -> tuple[tuple[AuditRecord, ...], Finding]:
        """Return what the audits of a node itself found, and whether they ran."""
        context = node.context(self._context(node, running))
        mine = {name: place for name, place in OF_SEVERAL.items() if name in self.chosen}
        outcomes = [run_one(job, context) for job in prepared(mine, context)]
        context.progress.phases((), ())
        return tuple(record for record, _ in outcomes), together(f for _, f in outcomes)

    def _context(self, node: Node, running: Running) -> AuditContext:
        first = node.leaves[0]
        return AuditContext(
            first,
            Column(first).claim,
            self.plan,
            Watched(running.progress, running.stop),
            finished=running.finished.within("all"),
            stop=running.stop,
            tasks=running.tasks or Threads(self.plan.threads),
        )

    def _case(
        self,
        node: Columns | Releases | Files,
        policy: Policy,
        epsilon: float | None,
        records: tuple[AuditRecord, ...],
        evidence: Evidence,
    ) -> NodeCase:
        case = NodeCase(policy, words_of(node), epsilon, evidence, records, declared=node.declared)
        if isinstance(node, Columns):
            joint = node.joint is not None and not node.joint.independent
            return replace(
                case,
                odd=_NOT_JOINT if joint else _TOGETHER,
                assumes_draws=not joint,
                advisable=all(map(advisable, node.leaves)),
                audited=len(node.leaves),
            )
        if isinstance(node, Files):
            known = any(column.over.releases.known for column in node.columns)
            return replace(case, boundable=known, odd=_BETWEEN, audited=len(node.names))
        known, odd = node.over.releases.known, odd_words(evidence.estimates.values(), node.noise)
        return replace(case, boundable=known, odd=odd or _NEITHER, audited=1)


def words_of(node: Columns | Releases | Files) -> Words:
    """Return what a node and its parts are called."""
    t = len(node.files.files) if isinstance(node, Files) else len(node.leaves)
    if isinstance(node, Columns):
        called = tuple(one.label for one in node.leaves)
        return Words("column", f"the {t} columns together", called, extent=f"over {t} columns")
    files = tuple(one.name for one in node.leaves)
    if isinstance(node, Releases):
        called = files if node.held else ()
        return Words("release", f"the {t} releases together", called, extent=f"over {t} releases")
    d = len(node.names)
    whole = f"{d} column{'s' * (d > 1)} over {t} releases"
    return Words(
        "release",
        f"the {whole} together",
        extent=f"over {t} releases of {d} columns",
        parts=(
            *(f"column {name} over the releases" for name in node.files.columns),
            *(f"release {place} ({one.name})" for place, one in enumerate(node.files.files, 1)),
        ),
    )


def _called(part: Node) -> str:
    """Return what a part is called while it is audited, such as "Column vote"."""
    if isinstance(part, Releases):
        return f"Column {part.leaves[-1].label} over the releases"
    if part.key.startswith("column"):
        return f"Column {part.leaves[0].label}"
    return part.key.replace("-", " ").capitalize()


def _size(node: Node) -> int:
    """Return how many nodes a tree has."""
    return 1 + sum(map(_size, (*node.columns, *node.releases)))


def _columns(node: Node) -> int:
    """Return how many audits of one column of one release there are."""
    parts = (*node.columns, *node.releases)
    return 1 if isinstance(node, Column) else sum(map(_columns, parts))
