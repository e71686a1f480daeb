"""An audit from start to end: choose the audits, run them, put the result together."""

import datetime
import importlib.metadata
import math
import platform
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import ldpaudit
from ldpaudit.audits.assumptions.standing import as_it_stands
from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.columns.survey import columns_finding
from ldpaudit.audits.held_out_guesses import HeldOutGuesses
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.listing import AUDITS
from ldpaudit.audits.mechanism.evidence import label_counts
from ldpaudit.audits.others import refusals, taking_part
from ldpaudit.audits.part import in_part, part_note
from ldpaudit.audits.running import prepared, run_one
from ldpaudit.device import check_device
from ldpaudit.errors import InputError, PolicyError
from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.circumstances import Circumstances, LeavingOut
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.judging.verdict import judge
from ldpaudit.mechanisms import Mechanism, from_declaration, traits_of
from ldpaudit.mechanisms.shown import shown_parameters
from ldpaudit.plugins import added
from ldpaudit.release import Declaration, Release
from ldpaudit.result import (
    AuditRecord,
    AuditResult,
    Check,
    MechanismInfo,
    Note,
    PlugIn,
    ReleaseInfo,
    RunInfo,
)
from ldpaudit.running.finished import Finished
from ldpaudit.running.progress import NoProgress, Progress
from ldpaudit.running.scratch import Scratch
from ldpaudit.running.stopping import Stop, Watched
from ldpaudit.tasks import Tasks, Threads

_VERSIONS = ("numpy", "scipy", "scikit-learn", "faiss-cpu", "torch", "pyarrow")


def run_audit(
    release: Release,
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
    finished: Finished | None = None,
    stop: Stop | None = None,
    scratch: Scratch | None = None,
    tasks: Tasks | None = None,
) -> AuditResult:
    """Run every audit that applies and judge the findings by a policy.

    Parameters
    ----------
    release : Release
    plan : Plan
        Where the policy pins the seed or the confidence, the policy wins.
    policy : Policy, optional
        Default: ``ldpaudit:default``.
    only, skip : collections of audit ids
        Which audits to run.
    progress : Progress, optional
    command : str
        How to run it again, without paths or names.
    today : datetime.date, optional
        Of the audit, and for the expiry of waivers; default: today, by UTC.
    notes : tuple of Note
        The warnings of the file's reader.
    guesses : HeldOutGuesses, optional
        Collects which held-out guesses of each attack were right; the result never holds them.
    finished : Finished, optional
        Where finished parts are kept; default: nowhere.
    stop : Stop, optional
        Ends the audit before it is done; default: after the plan's ``timeout``.
    scratch : Scratch, optional
        A folder for arrays that do not fit in memory; default: one of its own.
    tasks : Tasks, optional
        Does independent pieces of work; default: threads, as many as the plan says.

    Raises
    ------
    InputError
        If the claim is not one that can be audited, or ``only``/``skip`` name no audit.
    PolicyError
        If no audit ran at all, so that no check of the policy could be answered.
    """
    start = time.perf_counter()
    check_device(plan.device)
    policy = policy or default_policy()
    release, claim = _claim(release, policy)
    plan = _pinned(plan, policy)
    stop = stop or Stop.after(plan.timeout)
    context = AuditContext(
        *(release, claim, plan, Watched(progress or NoProgress(), stop), guesses),
        finished=finished or Finished(),
        stop=stop,
        scratch=Scratch() if scratch is None else scratch,
        tasks=tasks or Threads(plan.threads),
    )
    chosen, context = chosen_audits(only, skip), in_part(context)
    notes += part_note(context)
    stop.running = True
    with _limited_threads(plan.threads):
        outcomes = [run_one(job, context) for job in prepared(chosen, context)]
        columns = columns_finding(context)
        context.progress.phases((), ())
        records = tuple(record for record, _ in outcomes)
        if any(record.id == "assumptions" and record.status == "ran" for record in records):
            outcomes = [(r, as_it_stands(context, r.id, finding)) for r, finding in outcomes]
        findings = (*(finding for _, finding in outcomes), columns)
        today = today or datetime.datetime.now(datetime.UTC).date()
        judgement = judge(
            policy,
            claim,
            Evidence.collect(findings),
            rows=len(release),
            sha256=release.sha256,
            today=today,
            known=_circumstances(context, records, only),
        )
    _check_some_ran(judgement.checks, records)
    found = [note for finding in findings for note in finding.notes]
    scored = {e.score.subject for finding in findings for e in finding.estimates if e.score}
    return AuditResult(
        ldpaudit_version=ldpaudit.__version__,
        verdict=judgement.verdict,
        sentence=judgement.sentence,
        next_steps=judgement.next_steps,
        date=today.isoformat(),
        release=_release_info(release, plan),
        mechanism=_mechanism_info(release, claim, plan),
        estimates=tuple(e for finding in findings for e in finding.estimates),
        curves=tuple(c for finding in findings for c in finding.curves),
        histograms=tuple(h for finding in findings for h in finding.histograms),
        notes=(*notes, *refusals(AUDITS), *found, *judgement.notes),
        checks=judgement.checks,
        families=judgement.families,
        audits=records,
        run=run_info(
            *(plan, command, time.perf_counter() - start, policy),
            taking_part(claim, plan, records, scored, AUDITS),
        ),
    )


def _check_some_ran(checks: tuple[Check, ...], records: tuple[AuditRecord, ...]) -> None:
    """Refuse to judge where no check could run, unless the audit was stopped (PolicyError)."""
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
    context: AuditContext, records: tuple[AuditRecord, ...], only: Collection[str]
) -> Circumstances:
    """Return how the release was audited, for advice."""
    release, ran = context.release, {r.id for r in records if r.status == "ran"}
    option: LeavingOut = "--only" if only else "--skip"
    counted = "mechanism" in ran and release.bags is None and release.reports is None
    return Circumstances(
        truth=release.truth is not None,
        counts=label_counts(context) if counted and release.truth is not None else None,
        channel=aligned_channel(context) if counted else None,
        records=records,
        left_out=dict.fromkeys(available_audits().keys() - {r.id for r in records}, option),
        holds_truth=release.holds_truth,
        columns_left_out=release.left_out,
    )


def available_audits() -> Mapping[str, str]:
    """Return the audits by id, with the place of each; a plug-in cannot replace a built-in one."""
    return {**AUDITS, **{name: plugin.value for name, plugin in added("audit", AUDITS).items()}}


def _claim(release: Release, policy: Policy) -> tuple[Release, Mechanism]:
    declared = release.declaration
    if policy.claim is None:
        return release, from_declaration(declared, release.classes)
    claimed = policy.claim.declaration(None if declared is None else declared.name)
    same = declared is not None and claimed.name == declared.name
    if same and (policy.claim.epsilon is not None or not traits_of(claimed.name).whole):
        mechanism = from_declaration(declared, release.classes)
        if "lambda" in claimed.parameters:
            raise PolicyError(f"A claim of {claimed.name!r} must be stated by its epsilon.")
        if policy.checks.claimed_epsilon is None or mechanism.epsilon is None:
            _check_within(mechanism, claimed)
        return release, mechanism
    if declared is not None and "classes" in declared.parameters:
        classes = declared.parameters["classes"]
        claimed = replace(claimed, parameters={**claimed.parameters, "classes": classes})
    release = replace(release, declaration=claimed)
    return release, from_declaration(release.declaration, release.classes)


def _check_within(declared: Mechanism, claimed: Declaration) -> None:
    """Check that the declared ε is within the policy's limit, where no check of it does.

    Raises
    ------
    PolicyError
        If the declared ε lies above the limit.
    """
    limit = claimed.parameters.get("epsilon")
    epsilon = math.inf if declared.epsilon is None else declared.epsilon
    if limit is not None and epsilon > limit * (1 + 1e-9):
        raise PolicyError(
            f"The policy allows ε = {limit:.6g}, but the release declares ε = {epsilon:.6g}."
        )


def _pinned(plan: Plan, policy: Policy) -> Plan:
    seed = plan.seed if policy.audit.seed is None else policy.audit.seed
    return replace(
        plan,
        seed=seed,
        confidence=policy.audit.confidence,
        max_undetected_excess=policy.audit.max_undetected_excess.or_default(),
    )


def chosen_audits(only: Collection[str], skip: Collection[str]) -> dict[str, str]:
    """Return the audits that are to run by id, with the place of each.

    Raises
    ------
    InputError
        If one is unknown, or none is left.
    """
    known = available_audits()
    for name in (*only, *skip):
        if name not in known:
            raise InputError(f"There is no audit {name!r}; choose from {', '.join(known)}.")
    chosen = {n: p for n, p in known.items() if (not only or n in only) and n not in skip}
    if not chosen:
        raise InputError("No audit is left to run after --only and --skip.")
    return chosen


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


def _release_info(release: Release, plan: Plan) -> ReleaseInfo:
    shown = plan.show_class_names
    return ReleaseInfo(
        name=release.name,
        sha256=release.sha256,
        rows=len(release),
        features=release.features.columns,
        classes=len(release.classes),
        class_names=_display_names(release.classes, shown),
        label=release.label if shown else None,
        truth=release.truth is not None,
    )


def _display_names(values: tuple[Any, ...], shown: bool) -> tuple[str, ...]:
    if shown:
        return tuple(str(value) for value in values)
    return tuple(f"class {i}" for i in range(1, len(values) + 1))


def _mechanism_info(release: Release, claim: Mechanism, plan: Plan) -> MechanismInfo:
    return MechanismInfo(
        name=claim.name,
        declared=None if release.declaration is None else release.declaration.source,
        parameters=shown_parameters(claim.declaration(), plan.show_class_names),
        epsilon=claim.epsilon,
        description=claim.description,
    )


def run_info(
    plan: Plan,
    command: str,
    seconds: float,
    policy: Policy | None,
    plugins: tuple[PlugIn, ...] = (),
) -> RunInfo:
    """Return how a result was made: seed, command, versions, threads, time, policy, plug-ins."""
    python = {"ldpaudit": ldpaudit.__version__, "python": platform.python_version()}
    return RunInfo(
        seed=plan.seed,
        command=command,
        versions=python | dict(_installed_versions()),
        threads=plan.threads,
        seconds=round(seconds, 3),
        policy=None if policy is None else policy.name,
        policy_sha256=None if policy is None else policy.sha256,
        plugins=plugins,
    )


def _installed_versions() -> Iterator[tuple[str, str]]:
    """Give the version of each library that numbers come from; torch is not always there."""
    for name in _VERSIONS:
        with suppress(importlib.metadata.PackageNotFoundError):
            yield name, importlib.metadata.version(name)
