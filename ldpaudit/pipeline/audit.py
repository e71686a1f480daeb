"""One audit of a private column of one release: its claim, its audits, its judgement."""

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

import ldpaudit
from ldpaudit.audits.alignment import Fit, truth_fit
from ldpaudit.audits.assumptions.rows import tested
from ldpaudit.audits.assumptions.standing import check_alignment, label_counts
from ldpaudit.audits.assumptions.words import steps
from ldpaudit.audits.before_after import column_shares, confusion
from ldpaudit.audits.columns import columns_finding, concerned
from ldpaudit.audits.interface import (
    AuditContext,
    Execution,
    Plan,
    Related,
    in_part,
)
from ldpaudit.audits.listing import BUILT_IN, ORDER, built_in_audits
from ldpaudit.audits.mechanism.evidence import subgroup_doubt
from ldpaudit.audits.models import aligned_channel, claimed_family, one_channel
from ldpaudit.audits.running import part_notes, refusals, run_audits, taking_part
from ldpaudit.device import check_device
from ldpaudit.errors import InputError, PolicyError, did_you_mean
from ldpaudit.judging.checks.interface import Circumstances, Evidence
from ldpaudit.judging.policy import Policy
from ldpaudit.judging.verdict import Judgement, judge
from ldpaudit.judging.waivers import unused_waivers
from ldpaudit.mechanisms import UNKNOWN, Mechanism, from_declaration, traits_of
from ldpaudit.pipeline.described import claim_of, mechanism_info, release_info
from ldpaudit.pipeline.public import public_facts
from ldpaudit.pipeline.replayed import beyond_features, replay_finding, replay_notes
from ldpaudit.pipeline.terms import Terms
from ldpaudit.pipeline.trees import Tree, trees
from ldpaudit.plugins import NOT_HERE, added
from ldpaudit.receipt.found import Replay
from ldpaudit.release import Release
from ldpaudit.result import (
    AuditRecord,
    AuditResult,
    ColumnShares,
    Confusion,
    Finding,
    Note,
    PlugIn,
    PublicFacts,
    RunInfo,
    merged,
)

_VERSIONS: Final = ("numpy", "scipy", "scikit-learn", "faiss-cpu", "torch", "pyarrow")


def available_audits() -> Mapping[str, str]:
    """Return the audits by id, with the place of each; a plug-in cannot replace a built-in one."""
    others = {name: plugin.value for name, plugin in added("audit", BUILT_IN).items()}
    return {**built_in_audits(), **others}


def chosen_audits(
    only: Collection[str], skip: Collection[str], more: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """Return the audits that are to run by id, with the place of each; ``more``: others to know."""
    known = {**available_audits(), **more}
    for name in (*only, *skip):
        if name not in known and name in ORDER:
            raise InputError(f"This installation lacks the audit {name!r}; install ldpaudit again.")
        if name not in known:
            near = did_you_mean(name, known, NOT_HERE)
            raise InputError(f"There is no audit {name!r}; choose from {', '.join(known)}{near}")
    chosen = {n: p for n, p in known.items() if (not only or n in only) and n not in skip}
    if not chosen:
        raise InputError("No audit is left to run after --only and --skip.")
    return chosen


def audit(
    released: Release | Tree,
    terms: Terms,
    run: Execution | None = None,
    *,
    notes: tuple[Note, ...] = (),
    replay: Replay | None = None,
) -> AuditResult:
    """Audit a private column, or a tree of several answers, and judge it by a policy.

    ``run``: default: that of :meth:`Terms.execution`. ``notes``: the warnings of the files' reader.
    ``replay``: what drawing the column's noise again found; trees hold their own.
    """
    check_device(terms.plan.device)
    run = run or terms.execution()
    if isinstance(released, Release) and released.strata is not None:
        released = trees("a column with a channel for each stratum").of_strata(released, replay)
    if isinstance(released, Release):
        return audit_column(terms, released, terms.policy.of_all(), run, notes, replay=replay)
    return released.audit(terms, run, notes)


def audit_column(
    terms: Terms,
    release: Release,
    policy: Policy,
    run: Execution,
    notes: tuple[Note, ...] = (),
    *,
    replay: Replay | None = None,
    related: Related | None = None,
    more: Mapping[str, str] = MappingProxyType({}),
) -> AuditResult:
    """Return the result of a private column of one release.

    ``policy``: what is asked of this column; ``related``: what else was released of its people;
    ``more``: the audits that are run besides for that reason, places by id.
    """
    start = time.perf_counter()
    release, claim = claimed(release, policy)
    context = context_of(terms, release, claim, policy, run, related=related, replay=replay)
    chosen = chosen_audits(terms.only, terms.skip, more)
    check_alignment(one_channel(context))
    fit = Fit() if context.proven else truth_fit(one_channel(context))
    with limited_threads(context.plan.threads):
        column = examined_column(terms, context, chosen, policy)
        judgement = judge(
            policy,
            claim,
            Evidence.collect(column.findings),
            rows=len(release),
            sha256=release.sha256,
            today=terms.today,
            circumstances=replace(column.circumstances(terms.skip), unrelated=fit.unrelated),
        )
    check_some_ran(judgement, column.records)
    notes = (*notes, *fit.notes, *column.notes(), *refusals())
    return column_result(terms, policy, column, judgement, notes, start)


def context_of(
    terms: Terms,
    release: Release,
    claim: Mechanism,
    policy: Policy,
    run: Execution,
    *,
    related: Related | None = None,
    replay: Replay | None = None,
) -> AuditContext:
    """Return the context of all rows of a column, with what the policy fixes."""
    # A claim of the policy's is not the one that the key was committed with.
    of_file = release.declaration is not None and release.declaration.source == "file"
    plan = pinned(terms.plan, policy)
    return AuditContext(release, claim, plan, related, run=run, replay=replay if of_file else None)


@dataclass(frozen=True)
class Examined:
    """What audits found of a column, before it is judged."""

    every: AuditContext
    """The context of all rows."""
    context: AuditContext
    """That of the rows that audits looked at."""
    records: tuple[AuditRecord, ...]
    findings: tuple[Finding, ...]
    confusion: Confusion | None
    public: PublicFacts
    columns: ColumnShares | None = None
    """The shares of each column before and after the noise."""

    def notes(self) -> tuple[Note, ...]:
        """Return what to know of the rows that were looked at, and of the replay."""
        return (*part_notes(self.context), *replay_notes(self.every.replay))

    def circumstances(self, skip: Collection[str]) -> Circumstances:
        """Return how the column was audited, for advice; ``skip``: audits that were left out."""
        return _circumstances(self.context, self.records, skip)


def examined(
    terms: Terms,
    every: AuditContext,
    chosen: Mapping[str, str],
    policy: Policy,
    further: Sequence[Callable[[AuditContext], Any]] = (),
) -> tuple[Examined, tuple[Any, ...]]:
    """Return what the chosen audits find, and what is computed of the context besides."""
    context = in_part(every)
    every.run.stop.running = True
    left_out = available_audits().keys() - chosen.keys()
    context = replace(context, replay=beyond_features(context))

    def facts(seen: AuditContext) -> PublicFacts:
        whole = replace(every, run=seen.run)
        return public_facts(whole, policy, left_out, terms.today, power=terms.outsiders)

    records, findings, besides = run_audits(chosen, context, [confusion, facts, *further])
    every.run.progress.phases(())
    table, public, *rest = besides
    return Examined(every, context, records, findings, table, public), tuple(rest)


def examined_column(
    terms: Terms, every: AuditContext, chosen: Mapping[str, str], policy: Policy
) -> Examined:
    """Return what is found of a column with all of its rows: also of its features, and replayed."""
    further = columns_finding, column_shares
    found, (of_columns, shares) = examined(terms, every, chosen, policy, further)
    findings = (*found.findings, of_columns, replay_finding(every.replay))
    return replace(found, findings=findings, columns=shares)


def column_result(
    terms: Terms,
    policy: Policy,
    column: Examined,
    judgement: Judgement,
    notes: tuple[Note, ...],
    start: float,
    strata: tuple[AuditResult, ...] = (),
) -> AuditResult:
    """Return the result of a column; ``start``: when it began, by the performance counter."""
    every, found = column.every, merged(column.findings)
    unused, strata = unused_waivers(strata, judgement.notes)
    scored = {estimate.score.subject for estimate in found.estimates if estimate.score}
    seconds = time.perf_counter() - start
    plugins = taking_part(every.claim, every.plan, column.records, scored)
    private = frozenset[str]() if every.related is None else every.related.private
    return AuditResult(
        release=release_info(every.release, private),
        mechanism=mechanism_info(every.release, every.claim, every.claim.epsilon),
        notes=(*notes, *found.notes, *unused),
        audits=column.records,
        run=run_info(every.plan, terms.command, seconds, policy, plugins),
        public=column.public,
        strata=strata,
        columns=column.columns,
        confusion=column.confusion,
        **judged_fields(terms.today, found, judgement),
    )


def judged_fields(today: datetime.date, finding: Finding, judgement: Judgement) -> dict[str, Any]:
    """Return the fields of a result that are the same for a column and for a tree."""
    return {
        "ldpaudit_version": ldpaudit.__version__,
        "verdict": judgement.verdict,
        "sentence": judgement.sentence,
        "next_steps": judgement.next_steps,
        "checks": judgement.checks,
        "families": judgement.families,
        "date": today.isoformat(),
        "estimates": finding.estimates,
        "curves": finding.curves,
        "histograms": finding.histograms,
    }


def claimed(release: Release, policy: Policy) -> tuple[Release, Mechanism]:
    """Return the release with the claim that counts, and that claim: the policy's or the file's."""
    declared = release.declaration
    if policy.claim is None:
        return release, claim_of(release)
    stated = policy.claim.declaration(None if declared is None else declared.name)
    same = declared is not None and stated.name == declared.name
    if declared is not None and declared.named and not same and declared.name != UNKNOWN:
        who = "the file declares" if declared.source == "file" else "the options declare"
        raise PolicyError(f"The policy asks for {stated.name}; {who} {declared.name}.")
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


def check_some_ran(judgement: Judgement, records: Sequence[AuditRecord]) -> None:
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
    left_out = available_audits().keys() - ran
    return Circumstances(
        truth=known,
        public_model=release.public_posterior is not None,
        counts=label_counts(context) if counted and known else None,
        channel=aligned_channel(context) if counted else None,
        family=claimed_family(context),
        records=records,
        left_out={name: "--skip" if name in skip else "--only" for name in left_out},
        holds_truth=release.holds_truth,
        declared=release.declaration is not None and release.declaration.source == "file",
        columns=release.declared,
        prior_epsilon=release.prior_epsilon,
        faults_of_making=release.faults_of_making,
        named_as_truth=release.named_as_truth,
        changes=dict(_changes(release)),
        advisable=advisable(release),
        replay=context.replay,
        concerns=concerned(release),
        **_steps(context, records),
    )


def _changes(release: Release) -> Iterator[tuple[str, str]]:
    """Yield what of a file no audit looks at, in words, and how to change that."""
    unused = sum(column.unused > 0 for column in release.columns)
    if release.left_out:
        what = _counted(release.left_out, "column")
        yield (
            f"{what} of the file took no part (--drop, --features), whatever may be read off there",
            "Remove the columns that this audit left out (--drop, --features) from the file.",
        )
    if release.unread:
        what = _counted(release.unread, "more sheet")
        yield (
            f"the workbook has {what}, perhaps hidden, that no audit looked at",
            "Save the audited sheet in a workbook of its own, without the other sheets.",
        )
    if release.besides:
        yield (
            f"{release.besides:,} bytes of the file's metadata are neither its declaration nor a "
            "description of its columns, and may hold anything, such as groups of rows",
            "Write the file anew without metadata of other programs.",
        )
    if unused:
        what, ends = _counted(unused, "column"), "s" if unused == 1 else ""
        yield (
            f"{what} of the file list{ends} categories that no row has, perhaps of people who were "
            "left out",
            "Write the file without the categories that no row has.",
        )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' if count != 1 else ''}"


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


def advisable(release: Release) -> bool:
    """Return whether ``ldpaudit advise`` can take a release."""
    # Its true labels are in a file of their own, in the same row order: not joined by an id; and
    # that file is no release, whose labels are noisy.
    own = release.holds_truth or release.truth_released
    known = release.truth is not None and not own
    return known and not release.keys and release.bags is None


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
def limited_threads(threads: int) -> Iterator[None]:
    """Let faiss and OpenMP use so many threads, and linear algebra one."""
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
