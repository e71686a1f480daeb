"""One audit of a tree of a person's answers: of every part first, then of the node itself."""

import datetime
import importlib.metadata
import math
import platform
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

import ldpaudit
from ldpaudit.audits.alignment import Fit, truth_fit
from ldpaudit.audits.assumptions.rows import clusters, tested
from ldpaudit.audits.assumptions.standing import check_alignment, label_counts
from ldpaudit.audits.assumptions.words import steps
from ldpaudit.audits.before_after import column_shares, confusion
from ldpaudit.audits.columns import columns_finding, concerned
from ldpaudit.audits.interface import (
    AuditContext,
    Companions,
    HeldOutGuesses,
    Plan,
    Run,
    collected,
    in_part,
)
from ldpaudit.audits.listing import AUDITS, BUILT_IN, OF_COLUMNS, OF_SEVERAL
from ldpaudit.audits.mechanism.evidence import subgroup_doubt
from ldpaudit.audits.models import aligned_channel, one_channel
from ldpaudit.audits.running import part_notes, refusals, run_audits, taking_part
from ldpaudit.device import check_device
from ldpaudit.errors import InputError, PolicyError, did_you_mean
from ldpaudit.judging.checks.interface import Circumstances, Evidence
from ldpaudit.judging.node import NodeCase, judge_node, shared
from ldpaudit.judging.node_words import Words, called_release
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.judging.verdict import Judgement, judge
from ldpaudit.judging.waivers import unused_waivers
from ldpaudit.mechanisms import Mechanism, from_declaration, traits_of
from ldpaudit.mechanisms.capabilities import LabelByStratum
from ldpaudit.pipeline.nodes import Node, claim_of, mechanism_info, node_of, release_info
from ldpaudit.pipeline.public import public_facts, public_facts_of
from ldpaudit.pipeline.replayed import beyond_features, replay_finding, replay_notes
from ldpaudit.plugins import NOT_HERE, added
from ldpaudit.randomness import child_generator
from ldpaudit.release import Declaration, FileColumns, Release
from ldpaudit.result import AuditRecord, AuditResult, Finding, Note, PlugIn, RunInfo, merged
from ldpaudit.work.progress import NoProgress, Progress, Stop, Watched
from ldpaudit.work.tasks import Tasks, Threads

_VERSIONS: Final = ("numpy", "scipy", "scikit-learn", "faiss-cpu", "torch", "pyarrow")
_OF_A_STRATUM: Final = frozenset(("assumptions", "mechanism", "power"))
"""The audits of a stratum; all others look at the column with all of its rows."""
_CHECKS_OF_A_STRATUM: Final = frozenset(
    (
        "claimed_epsilon",
        "undetected_excess",
        "claimed_channel",
        "rare_classes",
        "shared_noise",
        "composition",
    )
)
_NOT_JOINT: Final = "the released columns do not follow the joint mechanism that is declared"
_SHARED: Final = (
    "the noise of one column goes along with another's{}, so they were not drawn as declared"
)
_NEITHER: Final = "answers of the releases are neither all new nor all remembered, as declared"


def available_audits() -> Mapping[str, str]:
    """Return the audits by id, with the place of each; a plug-in cannot replace a built-in one."""
    return {**AUDITS, **{name: plugin.value for name, plugin in added("audit", BUILT_IN).items()}}


def chosen_audits(
    only: Collection[str], skip: Collection[str], more: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """Return the audits that are to run by id, with the place of each; ``more``: built in, too."""
    known = {**available_audits(), **more}
    for name in (*only, *skip):
        if name not in known:
            near = did_you_mean(name, known, NOT_HERE)
            raise InputError(f"There is no audit {name!r}; choose from {', '.join(known)}{near}")
    chosen = {n: p for n, p in known.items() if (not only or n in only) and n not in skip}
    if not chosen:
        raise InputError("No audit is left to run after --only and --skip.")
    return chosen


def audit(
    released: Node | Release | FileColumns,
    plan: Plan,
    policy: Policy | None = None,
    *,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    progress: Progress | None = None,
    command: str = "ldpaudit.audit(…)",
    today: datetime.date | None = None,
    notes: tuple[Note, ...] = (),
    guesses: HeldOutGuesses | None = None,
    stop: Stop | None = None,
    tasks: Tasks | None = None,
    outsiders: bool = True,
) -> AuditResult:
    """Audit every part of a tree and the tree itself, and judge them by a policy.

    The policy's error probability is shared in equal parts among all nodes, the time that is left
    among the columns.

    ``plan``: where the policy pins the seed or the confidence, the policy wins. ``policy``:
    default: ``ldpaudit:default``. ``only``, ``skip``: which audits to run. ``command``: how to run
    it again, without paths or names. ``today``: of the audit, and for the expiry of waivers;
    default: today, by UTC. ``notes``: the warnings of the files' reader. ``guesses``: collects
    which held-out guesses of each attack were right; the result never holds them. ``stop``: ends
    the audit before it is done; default: after the plan's ``timeout``. ``tasks``: does independent
    pieces of work; default: threads, as many as the plan says. ``outsiders``: whether the result
    also states what an audit could find, as far as everybody may know it; only the public page
    shows that.
    """
    check_device(plan.device)
    stop = stop or Stop.after(plan.timeout)
    watched, tasks = Watched(progress or NoProgress(), stop), tasks or Threads(plan.threads)
    run = Run(watched, stop, tasks, guesses, clusters)
    node = released if isinstance(released, Node) else node_of(released)
    policy, today = policy or default_policy(), today or datetime.datetime.now(datetime.UTC).date()
    walk = _Walk(plan, policy, policy, only, skip, {}, command, today, outsiders)
    if node.kind == "column":
        return walk.column(node, policy.of_all(), run, notes)
    chosen = chosen_audits(only, skip, {**OF_COLUMNS, **OF_SEVERAL})
    if chosen.keys() <= OF_SEVERAL.keys():
        what = "releases" if node.kind == "releases" else "columns"
        raise InputError(f"The {what} need an audit, too: add one, such as --only mechanism.")
    share = shared(policy, node.size)
    plan = pinned(plan, share)
    mine = {name: place for name, place in OF_SEVERAL.items() if name in chosen}
    only, skip = ({*names} - OF_SEVERAL.keys() for names in (only, skip))
    walk = replace(walk, plan=plan, share=share, only=only, skip=skip, own=mine)
    return walk.node(node, run, notes)[0]


@dataclass(frozen=True)
class _Walk:
    """What is the same at all nodes: the plan, the policy as given and its share for one node."""

    # ``only`` and ``skip`` choose the audits of columns, ``own`` are those of nodes with parts.

    plan: Plan
    policy: Policy
    share: Policy
    only: Collection[str]
    skip: Collection[str]
    own: Mapping[str, str]
    command: str
    today: datetime.date
    outsiders: bool = True

    def node(
        self, node: Node, run: Run, notes: tuple[Note, ...] = ()
    ) -> tuple[AuditResult, Finding]:
        """Return the result of a node, which holds those of its parts, and what was found."""
        start = time.perf_counter()
        claim = self.policy.claim
        if claim is not None:
            one = node.kind == "columns" or node.key.startswith("release")
            claim = claim.of(everything=not node.key, one_release=one)
        policy = self.share.model_copy(update={"claim": claim})
        if node.kind == "column":
            return self.column(node, policy.of_all(), run), Finding()
        found = []
        for place, part in enumerate(node.parts):
            run.progress.remark(f"{_called(part)}:")
            with run.stop.share(len(node.parts) - place):
                found.append(self.node(part, run))
        parts, findings = tuple(r for r, _ in found), [f for _, f in found]
        records, finding = self._own(node, findings, run)
        case = _case(node, policy, records, Evidence.collect([finding]))
        judgement = judge_node(case, parts, sha256=node.sha256, today=self.today)
        unused, parts = unused_waivers(parts, judgement.notes)
        result = AuditResult(
            release=release_info(node),
            mechanism=mechanism_info(node, node.joint, node.epsilon),
            notes=(*notes, *finding.notes, *unused),
            audits=records,
            run=run_info(self.plan, self.command, time.perf_counter() - start, self.policy),
            public=public_facts_of(node, parts, self.policy, self.today),
            labels=parts[: len(node.columns)],
            releases=parts[len(node.columns) :],
            **self._judged(finding, judgement),
        )
        return result, finding

    def _judged(self, finding: Finding, judgement: Judgement) -> dict[str, Any]:
        """Return what a result says of any node."""
        return {
            "ldpaudit_version": ldpaudit.__version__,
            "verdict": judgement.verdict,
            "sentence": judgement.sentence,
            "next_steps": judgement.next_steps,
            "checks": judgement.checks,
            "families": judgement.families,
            "date": self.today.isoformat(),
            "estimates": finding.estimates,
            "curves": finding.curves,
            "histograms": finding.histograms,
        }

    def _own(
        self, node: Node, parts: Sequence[Finding], run: Run
    ) -> tuple[tuple[AuditRecord, ...], Finding]:
        """Return what the audits of a node itself found, and whether they ran."""
        if node.files is not None:
            from ldpaudit.audits.person.audit import person_parts
            from ldpaudit.audits.person.noise import noise_between_files

            d, names = len(node.columns), [f"column {one.leaves[-1].label}" for one in node.columns]
            rng = child_generator(self.plan.seed, "person", "draws")
            found = person_parts(
                dict(zip(names, parts[:d], strict=True)),
                parts[d:],
                noise_between_files(node.files, rng, self.plan.confidence),
                node.epsilon,
                self.plan.confidence,
                adds_up=node.adds_up,
            )
            return (), collected(found)
        leaf = node.leaves[0 if node.kind == "columns" else -1]
        run = replace(run, guesses=None)
        context = AuditContext(leaf, claim_of(leaf), self.plan, node.related, run=run)
        records, findings, _ = run_audits(self.own, context)
        context.progress.phases(())
        return records, merged(findings)

    def column(
        self,
        node: Node,
        asked: Policy,
        run: Run,
        notes: tuple[Note, ...] = (),
        *,
        stratum: bool = False,
    ) -> AuditResult:
        """Return the result of a private column, or of one of its strata."""
        # Of a stratum, which has one channel, the channel alone is audited.
        start, (release, claim) = time.perf_counter(), claimed(node.leaves[0], asked)
        views, policy = () if stratum else tuple(_strata(release, claim)), asked
        if views and asked.audit.correction != "none":  # The strata and their column share it.
            confidence = 1 - (1 - asked.audit.confidence) / (len(views) + 1)
            audit = asked.audit.model_copy(update={"confidence": confidence})
            policy = asked.model_copy(update={"audit": audit})
        plan = pinned(self.plan, policy)
        # A claim of the policy's is not the one that the key was committed with.
        of_file = release.declaration is not None and release.declaration.source == "file"
        replay = node.replays[0] if node.replays and of_file else None
        context = AuditContext(release, claim, plan, node.related, run=run, replay=replay)
        several = stratum or isinstance(node.related, Companions)
        chosen = chosen_audits(self.only, self.skip, OF_COLUMNS if several else {})
        if stratum:
            chosen = {name: place for name, place in chosen.items() if name in _OF_A_STRATUM}
        check_alignment(one_channel(context))
        # Of strata, each has a channel of its own and answers for its rows.
        fit = Fit() if views or context.proven else truth_fit(one_channel(context))
        notes += fit.notes
        strata = []
        for view, rows in views:
            run.progress.remark(f"Stratum {view.label}:")
            slices = tuple(replace(one, codes=one.codes[rows]) for one in plan.slices)
            own = replace(self, plan=replace(plan, slices=slices))
            within = replace(run, guesses=None)
            of_view = node_of(view)
            if context.proven and context.replay is not None:
                of_view = replace(of_view, replays=(context.replay,))
            part = own.column(of_view, _of_a_stratum(policy), within, stratum=True)
            strata.append(part)
        every, context = context, in_part(context)
        notes += (*part_notes(context), *(() if stratum else replay_notes(replay)))
        run.stop.running = True
        left_out = available_audits().keys() - chosen.keys()
        with _limited_threads(plan.threads):
            context = replace(context, replay=beyond_features(context))
            besides: list[Callable[[AuditContext], Any]] = [
                confusion,
                lambda own: public_facts(
                    replace(every, run=own.run), asked, left_out, self.today, power=self.outsiders
                ),
                *(() if stratum else (columns_finding, column_shares)),
            ]
            records, findings, (table, public, *of_columns) = run_audits(chosen, context, besides)
            findings += () if stratum else (of_columns[0], replay_finding(replay))
            run.progress.phases(())
            judgement = judge(
                policy,
                claim,
                Evidence.collect(findings),
                rows=len(release),
                sha256=release.sha256,
                today=self.today,
                known=replace(_circumstances(context, records, self.skip), unrelated=fit.unrelated),
                strata=strata,
            )
        if not stratum:
            every_record = [*records, *(record for one in strata for record in one.audits)]
            _check_some_ran(judgement, every_record)
        unused, parts = unused_waivers(tuple(strata), judgement.notes)
        found = merged(findings)
        scored = {e.score.subject for e in found.estimates if e.score}
        seconds = time.perf_counter() - start
        plugins = taking_part(claim, plan, records, scored)
        return AuditResult(
            release=release_info(replace(node, leaves=(release,))),
            mechanism=mechanism_info(replace(node, leaves=(release,)), claim, claim.epsilon),
            notes=(*notes, *(() if stratum else refusals()), *found.notes, *unused),
            audits=records,
            run=run_info(plan, self.command, seconds, policy, plugins),
            public=public,
            strata=parts,
            columns=None if stratum else of_columns[1],
            confusion=table,
            **self._judged(found, judgement),
        )


def claimed(release: Release, policy: Policy) -> tuple[Release, Mechanism]:
    """Return the release with the claim that counts, and that claim: the policy's or the file's."""
    declared = release.declaration
    if policy.claim is None:
        return release, claim_of(release)
    stated = policy.claim.declaration(None if declared is None else declared.name)
    same = declared is not None and stated.name == declared.name
    if same and (policy.claim.epsilon is not None or not traits_of(stated.name).whole):
        mechanism, limit = claim_of(release), stated.parameters.get("epsilon")
        if "lambda" in stated.parameters:
            raise PolicyError(f"A claim of {stated.name!r} must be given by its epsilon.")
        checked = policy.checks.claimed_epsilon is not None and mechanism.epsilon is not None
        epsilon = math.inf if mechanism.epsilon is None else mechanism.epsilon
        if not checked and limit is not None and epsilon > limit * (1 + 1e-9):
            raise PolicyError(
                f"The policy allows ε = {limit:.6g}, but the release declares ε = {epsilon:.6g}."
            )
        return release, mechanism
    if declared is not None and "classes" in declared.parameters:
        classes = {"classes": declared.parameters["classes"]}
        stated = replace(stated, parameters={**stated.parameters, **classes})
    return replace(release, declaration=stated), from_declaration(stated, release.classes)


def pinned(plan: Plan, policy: Policy) -> Plan:
    """Return the plan with what the policy fixes."""
    fixed = policy.audit
    return replace(
        plan,
        seed=plan.seed if fixed.seed is None else fixed.seed,
        confidence=fixed.confidence,
        max_undetected_excess=fixed.max_undetected_excess.or_default(),
    )


def _strata(release: Release, claim: Mechanism) -> Iterator[tuple[Release, np.ndarray]]:
    """Yield a release of each stratum that has rows, in the declared order, and those rows."""
    # Nothing where one channel serves all rows. Rows of different strata are never compared, so all
    # that bounds and tests assume of one channel holds within a stratum.
    strata, declared, by_value = release.strata, release.declaration, claim.offers(LabelByStratum)
    if strata is None or declared is None or by_value is None:
        return
    for place in np.unique(strata.codes):
        rows, own = np.flatnonzero(strata.codes == place), claim.by_stratum[place]
        stated, label = own.declaration(), str(by_value.values[place])
        view = replace(release.take(rows), strata=None, declared=None, label=label)
        yield replace(view, declaration=Declaration(own.name, stated, declared.source)), rows


def _of_a_stratum(policy: Policy) -> Policy:
    """Return what a policy asks of a stratum: the checks of its channel alone."""
    others = type(policy.checks).model_fields.keys() - _CHECKS_OF_A_STRATUM
    checks = policy.checks.model_copy(update=dict.fromkeys(others))
    audit = policy.audit.model_copy(update={"min_rows": None})
    return policy.model_copy(update={"checks": checks, "audit": audit, "claim": None}).of_all()


def _check_some_ran(judgement: Judgement, records: Sequence[AuditRecord]) -> None:
    """Refuse to judge where no check could run, unless the audit was stopped (PolicyError)."""
    checks = judgement.checks
    if not checks or any(record.status == "stopped" for record in records):
        return
    if not any(record.status == "ran" for record in records):
        reasons = [f"{r.id}: {r.reason}" for r in records if r.reason]
    elif any(c.verdict != "inconclusive" or c.evidence or c.observed is not None for c in checks):
        return
    else:
        reasons = [f"{check.id}: {check.reason}" for check in checks]
    raise PolicyError(f"No check of the policy could run ({'; '.join(reasons)}).")


def _circumstances(
    context: AuditContext, records: tuple[AuditRecord, ...], skip: Collection[str]
) -> Circumstances:
    """Return how the release was audited, for advice."""
    release, context = context.release, one_channel(context)
    counted, known = release.bags is None and release.reports is None, release.truth is not None
    ran = {record.id for record in records}
    changes = {
        "Remove the columns that this audit left out (--drop, --features) from the file.": bool(
            release.left_out
        ),
        "Save the audited sheet in a workbook of its own, without the other sheets.": bool(
            release.unread
        ),
        "Write the file without the categories that no row has.": any(
            column.unused for column in release.columns
        ),
    }
    return Circumstances(
        truth=known,
        counts=label_counts(context) if counted and known else None,
        channel=aligned_channel(context) if counted else None,
        records=records,
        left_out={
            name: "--skip" if name in skip else "--only" for name in available_audits().keys() - ran
        },
        holds_truth=release.holds_truth,
        declared=release.declaration is not None and release.declaration.source == "file",
        columns=release.declared,
        changes=tuple(text for text, needed in changes.items() if needed),
        advisable=_advisable(release),
        replay=context.replay,
        concerns=concerned(release),
        **_steps(context, records),
    )


def _steps(context: AuditContext, records: Sequence[AuditRecord]) -> dict[str, Any]:
    """Return what to look at first by what was found of the noise; nothing where none looked."""
    ran = {record.id for record in records if record.status == "ran"}
    if context.proven or not tested(context) or not {"assumptions", "mechanism"} & ran:
        return {}
    found = steps(context, subgroup_doubt(context) if "mechanism" in ran else None)
    return {
        "noise_step": found.noise,
        "columns_step": found.columns,
        "changed_by": found.changed,
        "may_be_made": found.made,
    }


def _advisable(release: Release) -> bool:
    """Return whether ``ldpaudit advise`` can take a release."""
    # Its true labels are in a file of their own, in the same row order: not joined by an id.
    known = release.truth is not None and not release.holds_truth
    return known and not release.keys and release.bags is None


def _case(
    node: Node, policy: Policy, records: tuple[AuditRecord, ...], evidence: Evidence
) -> NodeCase:
    case = NodeCase(
        policy,
        words_of(node),
        node.epsilon,
        evidence,
        records,
        boundable=node.kind == "columns" or any(one.knows_truth for one in node.columns or (node,)),
        declared=node.declared,
        audited=len(node.names),
        replays=() if node.noise == "remembered" else node.replays,
    )
    if node.kind == "columns":
        joint = node.drawn_jointly
        odd = _NOT_JOINT if joint else _SHARED.format("")
        advisable = all(map(_advisable, node.leaves))
        return replace(case, odd=odd, assumes_draws=not joint, advisable=advisable)
    if node.kind == "person":
        return replace(case, odd=_SHARED.format(" of another release"))
    from ldpaudit.audits.person.noise import odd_words

    odd = odd_words([*evidence.estimates.values()], node.noise)
    return replace(case, odd=odd or _NEITHER, audited=1)


def words_of(node: Node) -> Words:
    """Return what a node and its parts are called."""
    d, t = len(node.names), len(node.releases or node.leaves)
    names = tuple(one.label for one in node.leaves)
    if node.kind == "columns":
        return Words("column", f"the {d} columns together", names, f"over {d} columns")
    files = tuple(one.name for one in node.releases)
    if node.kind == "releases":
        return Words("release", f"the {t} releases together", files, f"over {t} releases")
    columns = tuple(f"column {one.leaves[-1].label} over the releases" for one in node.columns)
    releases = tuple(called_release(place, name) for place, name in enumerate(files, 1))
    called = f"the {d} column{'s' * (d > 1)} over {t} releases together"
    extent = f"over {t} releases of {d} columns"
    return Words("release", called, (), extent, (*columns, *releases))


def _called(part: Node) -> str:
    """Return what a part is called while it is audited, such as "Column vote"."""
    if part.kind == "releases":
        return f"Column {part.leaves[-1].label} over the releases"
    if part.key.startswith("column"):
        return f"Column {part.leaves[0].label}"
    return part.key.replace("-", " ").capitalize()


def run_info(
    plan: Plan,
    command: str,
    seconds: float,
    policy: Policy | None,
    plugins: tuple[PlugIn, ...] = (),
) -> RunInfo:
    """Return how a result was made: seed, command, versions, threads, time, policy, plug-ins."""
    versions = {"ldpaudit": ldpaudit.__version__, "python": platform.python_version()}
    for name in _VERSIONS:  # The libraries that numbers come from; torch is not always there.
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return RunInfo(
        seed=plan.seed,
        command=command,
        versions=versions,
        threads=plan.threads,
        seconds=round(seconds, 3),
        policy=None if policy is None else policy.name,
        policy_sha256=None if policy is None else policy.sha256,
        plugins=plugins,
    )


@contextmanager
def _limited_threads(threads: int) -> Iterator[None]:
    import faiss
    from threadpoolctl import threadpool_limits

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads)
    try:
        # Linear algebra here is many small products: there BLAS threads cost more than they give.
        with threadpool_limits({"blas": 1, "openmp": threads}):
            yield
    finally:
        faiss.omp_set_num_threads(before)
