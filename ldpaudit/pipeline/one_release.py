"""An audit of one release: choose the audits, run them, judge, put the result together."""

import datetime
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import ldpaudit
from ldpaudit.audits.assumptions.alignment import check_alignment
from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.columns.survey import columns_finding
from ldpaudit.audits.held_out_guesses import HeldOutGuesses
from ldpaudit.audits.interface import AuditContext, Companions, Plan
from ldpaudit.audits.listing import OF_COLUMNS
from ldpaudit.audits.mechanism.evidence import label_counts
from ldpaudit.audits.part import in_part, part_note
from ldpaudit.audits.plug_ins import refusals, taking_part
from ldpaudit.audits.running import prepared, run_one
from ldpaudit.device import check_device
from ldpaudit.errors import PolicyError
from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.circumstances import Circumstances
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.judging.verdict import judge
from ldpaudit.judging.waivers import unused_waivers
from ldpaudit.pipeline.about import mechanism_info, release_info, run_info
from ldpaudit.pipeline.choosing import available_audits, chosen_audits
from ldpaudit.pipeline.claim import claim_of, pinned
from ldpaudit.pipeline.public import public_facts
from ldpaudit.pipeline.strata import (
    OF_THE_CHANNEL,
    of_a_stratum,
    shared_by_strata,
    strata_of,
)
from ldpaudit.release import Release
from ldpaudit.result import (
    AuditRecord,
    AuditResult,
    Check,
    Finding,
    Note,
    together,
)
from ldpaudit.running.finished import Finished
from ldpaudit.running.progress import NoProgress, Progress
from ldpaudit.running.stopping import Stop, Watched
from ldpaudit.tasks import Tasks, Threads


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
    tasks: Tasks | None = None,
    companions: Companions | None = None,
    stratum: bool = False,
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
    tasks : Tasks, optional
        Does independent pieces of work; default: threads, as many as the plan says.
    companions : Companions, optional
        The other private columns of the release, where it has several.
    stratum : bool
        Whether it is a stratum of a column, of which the channel alone is audited.

    Raises
    ------
    InputError
        If the claim is not one that can be audited, ``only``/``skip`` name no audit, or the true
        labels are not those of these rows.
    PolicyError
        If no audit ran at all, so that no check of the policy could be answered.
    """
    start = time.perf_counter()
    check_device(plan.device)
    asked = (policy or default_policy()).of_all()
    asked = of_a_stratum(asked) if stratum else asked
    release, claim = claim_of(release, asked)
    views = tuple(strata_of(release, claim, plan))
    policy = shared_by_strata(asked, len(views))
    plan = pinned(plan, policy)
    stop = stop or Stop.after(plan.timeout)
    finished, tasks = finished or Finished(), tasks or Threads(plan.threads)
    today = today or datetime.datetime.now(datetime.UTC).date()
    progress = progress or NoProgress()
    context = AuditContext(
        *(release, claim, plan, Watched(progress, stop), guesses),
        finished=finished,
        stop=stop,
        tasks=tasks,
        companions=companions,
    )
    chosen = chosen_audits(only, skip, {} if companions is None and not stratum else OF_COLUMNS)
    if stratum:
        chosen = {name: place for name, place in chosen.items() if name in OF_THE_CHANNEL}
    check_alignment(context)
    strata: tuple[AuditResult, ...] = ()
    for number, (view, own) in enumerate(views, 1):
        progress.remark(f"Stratum {view.label}:")
        part = run_audit(
            *(view, own, policy),
            only=only,
            skip=skip,
            progress=progress,
            command=command,
            today=today,
            finished=finished.within(f"stratum-{number}"),
            stop=stop,
            tasks=tasks,
            stratum=True,
        )
        strata = (*strata, part)
    every, context = context, in_part(context)
    notes += part_note(context)
    stop.running = True
    with _limited_threads(plan.threads):
        outcomes = [run_one(job, context) for job in prepared(chosen, context)]
        columns = Finding() if stratum else columns_finding(context)
        context.progress.phases((), ())
        records = tuple(record for record, _ in outcomes)
        findings = (*(finding for _, finding in outcomes), columns)
        evidence = Evidence.collect(findings)
        judgement = judge(
            policy,
            claim,
            evidence,
            rows=len(release),
            sha256=release.sha256,
            today=today,
            known=_circumstances(context, records, skip),
            strata=strata,
        )
    if not stratum:
        every_record = (*records, *(record for one in strata for record in one.audits))
        _check_some_ran(judgement.checks, every_record)
    judged, strata = unused_waivers(strata, judgement.notes)
    found = together(findings)
    scored = {e.score.subject for e in found.estimates if e.score}
    return AuditResult(
        ldpaudit_version=ldpaudit.__version__,
        verdict=judgement.verdict,
        sentence=judgement.sentence,
        next_steps=judgement.next_steps,
        date=today.isoformat(),
        release=release_info(release),
        mechanism=mechanism_info(release, claim),
        estimates=found.estimates,
        curves=found.curves,
        histograms=found.histograms,
        notes=(*notes, *(() if stratum else refusals()), *found.notes, *judged),
        checks=judgement.checks,
        families=judgement.families,
        audits=records,
        run=run_info(
            *(plan, command, time.perf_counter() - start, policy),
            taking_part(claim, plan, records, scored),
        ),
        public=public_facts(every, asked, available_audits().keys() - chosen.keys(), today),
        strata=strata,
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
    context: AuditContext, records: tuple[AuditRecord, ...], skip: Collection[str]
) -> Circumstances:
    """Return how the release was audited, for advice."""
    release = context.release
    counted = release.bags is None and release.reports is None
    known = release.truth is not None
    return Circumstances(
        truth=known,
        counts=label_counts(context) if counted and known else None,
        channel=aligned_channel(context) if counted else None,
        records=records,
        left_out={
            name: "--skip" if name in skip else "--only"
            for name in available_audits().keys() - {r.id for r in records}
        },
        holds_truth=release.holds_truth,
        declared=release.declaration is not None and release.declaration.source == "file",
        columns=release.declared,
        changes=tuple(_changes(release)),
        advisable=advisable(release),
    )


def _changes(release: Release) -> Iterator[str]:
    """Yield what has to be changed in the file before it is published."""
    if release.left_out:
        yield "Remove the columns that this audit left out (--drop, --features) from the file."
    if any(column.unused for column in release.columns):
        yield "Write the file without the categories that no row has."


def advisable(release: Release) -> bool:
    """Return whether ``ldpaudit advise`` can take a release.

    Its true labels are in a file of their own, in the same row order: not joined by an id.
    """
    known = release.truth is not None and not release.holds_truth
    return known and not release.keys and release.bags is None


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
