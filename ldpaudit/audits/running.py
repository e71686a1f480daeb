"""Running audits: which apply, what they will take, which are finished already or end early."""

import functools
import importlib.metadata
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final, get_args

from pydantic import BaseModel

from ldpaudit.audits.assumptions.standing import as_it_stands
from ldpaudit.audits.costs import cost_of, plan_line
from ldpaudit.audits.interface import (
    Audit,
    AuditContext,
    Cost,
    Counting,
    Counts,
    Need,
    Needing,
)
from ldpaudit.audits.listing import BUILT_IN
from ldpaudit.audits.part import one_row_of_each_group
from ldpaudit.errors import InputError, InsufficientDataError, LdpAuditError, MissingDependencyError
from ldpaudit.plugins import check_name, check_one, read_only, unloadable, watched
from ldpaudit.result import AuditRecord, Curve, Estimate, Finding, Histogram, Note
from ldpaudit.result.dictionary import meaning
from ldpaudit.running.stopping import Stop, Stopped, Watched

_LACKS: Final[Mapping[str, str]] = {
    "labels": "every row has the same released label, which reveals nothing of the true ones",
    "rows": "labels were released in bags, not row by row; see the audit 'aggregates'",
    "truth": "it needs the true labels (--truth)",
}
"""Why an audit is skipped that needs what the release does not have."""
_PARTS: Final[dict[str, type[BaseModel]]] = {
    "estimates": Estimate,
    "curves": Curve,
    "histograms": Histogram,
    "notes": Note,
}


@dataclass(frozen=True)
class Job:
    """An audit that was asked for.

    Attributes
    ----------
    name : str
    audit : Audit
    reason : str or None
        Why it does not apply; None where it does.
    number : int
        Its place among those that apply, from 0.
    cost : Cost
    """

    name: str
    audit: Audit
    reason: str | None
    number: int
    cost: Cost


def prepared(chosen: Mapping[str, str], context: AuditContext) -> list[Job]:
    """Return the audits that were asked for, and announce the phases and what they will take.

    Parameters
    ----------
    chosen : mapping from id to place, ``MODULE:CLASS``
    context : AuditContext
    """
    jobs: list[Job] = []
    for name, path in chosen.items():
        audit = _loaded(name, path)
        with _watched(name):
            reason = _unavailable(name, audit, context)
        number = sum(job.reason is None for job in jobs)
        done = reason is not None or _key(name) in context.finished
        with _watched(name):
            cost = Cost(0.0) if done else _cost(name, audit, context)
        jobs.append(Job(name, audit, reason, number, cost))
    at_work = [job for job in jobs if job.reason is None]
    line = plan_line(context, [job.cost for job in at_work])
    if line:
        context.progress.remark(line)
    names = [job.name.replace("-", " ") for job in at_work]
    context.progress.phases(names, [job.cost.seconds for job in at_work])
    return jobs


def run_one(job: Job, context: AuditContext) -> tuple[AuditRecord, Finding]:
    """Return whether an audit ran, and what it found.

    Raises
    ------
    LdpAuditError
        If it failed for another reason than too few rows, or a library that is not installed.
    """
    start, context.stop.obeyed = time.perf_counter(), False
    reason = job.reason
    kept = None if reason else _kept(job, context)
    if kept is not None:
        return kept
    finding = Finding()
    if reason is None:
        try:
            context.progress.phase(job.number)
            finding = _found(job, context)
        except Stopped:
            pass
        except (InsufficientDataError, MissingDependencyError) as error:
            reason = str(error)
    status = "ran" if reason is None else "skipped"
    if reason is None and context.stop.obeyed:
        status, reason = "stopped", context.stop.reason
    seconds = round(time.perf_counter() - start, 3)
    record = AuditRecord.model_validate(
        {"id": job.name, "status": status, "reason": reason or "", "seconds": seconds}
    )
    if status == "ran":
        _keep(record, finding, context)
    return record, finding


def load(path: str) -> Audit:
    """Return the audit at a place."""
    entry = importlib.metadata.EntryPoint(name="", value=path, group="ldpaudit.audits")
    audit: Audit = entry.load()()
    return audit


def _loaded(name: str, path: str) -> Audit:
    if name in BUILT_IN:
        return load(path)
    check_one("audit", name)
    try:
        audit = load(path)
    except (Exception, SystemExit) as error:
        raise unloadable("audit", name, error) from error
    check_name("audit", name, getattr(audit, "id", None))
    return audit


def _cost(name: str, audit: Audit, context: AuditContext) -> Cost:
    cost: object = cost_of(name, audit, context)
    if not isinstance(cost, Cost):
        raise InputError(f"The audit {name!r} must predict its cost as a Cost.")
    return cost


def _watched(name: str) -> AbstractContextManager[None]:
    """Return what names an audit of another package where it fails."""
    otherwise = f"leave it out with --skip {name}, or run again with --debug"
    return nullcontext() if name in BUILT_IN else watched("audit", name, otherwise)


def _own_numbers(name: str, finding: Finding) -> Finding:
    """Return what an audit found; of another package's each number has a name of its own."""
    ids = [part.id for part in (*finding.estimates, *finding.curves, *finding.histograms)]
    for identifier in (*ids, *finding.bounds) if name not in BUILT_IN else ():
        why = None
        if meaning(identifier) is not None:
            why = "is the name of a built-in one"
        elif not identifier.startswith(f"{name}."):
            why = "is not"
        elif ids.count(identifier) > 1:
            why = "is the name of two"
        if why:
            raise InputError(
                f"The plug-in {name!r} (audit) must call its numbers {name}.…, each otherwise; "
                f"{identifier!r} {why}."
            )
    return finding


def _unavailable(name: str, audit: Audit, context: AuditContext) -> str | None:
    release, needs = context.release, _needs(name, audit)
    has = {"labels": not release.constant, "rows": release.bags is None}
    for need, there in has.items():
        if need in needs and not there:
            return _LACKS[need]
    reason = audit.unavailable(context)
    if reason is not None and not isinstance(reason, str):
        raise InputError(f"The audit {name!r} must say in words why it is unavailable, or None.")
    # True labels are asked for last: where an audit does not apply, giving them would not help.
    lacks = reason is None and "truth" in needs and release.truth is None
    return _LACKS["truth"] if lacks else reason


def _found(job: Job, context: AuditContext) -> Finding:
    try:
        with _watched(job.name):
            seen = _seen(job, context)
            finding = job.audit.run(seen)
            if not isinstance(finding, Finding):
                raise InputError(f"The audit {job.name!r} must return a Finding.")
            if _counts(job.name, job.audit) == "people":
                finding = as_it_stands(seen, finding)
            return _own_numbers(job.name, finding.in_section(job.name))
    except (LdpAuditError, MemoryError):
        raise
    except Exception as error:
        raise LdpAuditError(
            f"Internal fault in the audit {job.name!r} ({type(error).__name__}); leave it out with "
            f"--skip {job.name}, or run again with --debug and report it."
        ) from error


def _seen(job: Job, context: AuditContext) -> AuditContext:
    """Return what an audit may see of a release: what it counts, or all rows in their order."""
    if "order" in _needs(job.name, job.audit) and context.whole is not None:
        context = replace(context, release=context.whole, whole=None)
    if _counts(job.name, job.audit) == "people":
        context = one_row_of_each_group(context)
    if job.name not in BUILT_IN:
        return replace(context, release=read_only(context.release))
    return context


def _counts(name: str, audit: Audit) -> Counts:
    """Return what an audit counts (InputError where that is neither people nor rows)."""
    counts = audit.counts if isinstance(audit, Counting) else "people"
    if counts not in get_args(Counts):
        raise InputError(f"The audit {name!r} must count 'people' or 'rows'.")
    return counts


def _needs(name: str, audit: Audit) -> tuple[Need, ...]:
    """Return what an audit needs (InputError where that is nothing an audit may need)."""
    needs: object = audit.needs if isinstance(audit, Needing) else ("labels", "rows")
    if not isinstance(needs, tuple) or not set(needs) <= set(get_args(Need)):
        known = ", ".join(map(repr, get_args(Need)))
        raise InputError(f"What the audit {name!r} needs must be a tuple of some of {known}.")
    return needs


def _key(name: str) -> str:
    return f"audit/{name}"


def _keep(record: AuditRecord, finding: Finding, context: AuditContext) -> None:
    """Keep what an audit found, unless guesses of rows are wanted too, which are never kept."""
    if context.guesses is None:
        parts = {name: [p.model_dump() for p in getattr(finding, name)] for name in _PARTS}
        bounds = {"bounds": sorted(finding.bounds)}
        part = {"record": record.model_dump(), **parts, **bounds}
        context.finished.put(_key(record.id), part)


def _kept(job: Job, context: AuditContext) -> tuple[AuditRecord, Finding] | None:
    """Return what an audit found in an earlier run that was cut short."""
    part = None if context.guesses is not None else context.finished.get(_key(job.name))
    if part is None:
        return None
    found: dict[str, Any] = {
        key: tuple(kind.model_validate(p) for p in part[key]) for key, kind in _PARTS.items()
    }
    again = _Again(job, context)
    found["bounds"] = {key: functools.partial(again.bound, key) for key in part["bounds"]}
    return AuditRecord.model_validate(part["record"]), Finding(**found)


class _Again:
    """An audit whose numbers are kept; its bounds, which are functions, are made when asked for.

    The audit then runs again, to the end: what is dear in it is kept part by part.
    """

    def __init__(self, job: Job, context: AuditContext) -> None:
        progress = context.progress
        if isinstance(progress, Watched):  # Nobody could be told any more that it ended early.
            progress = progress.progress
        context = replace(context, progress=progress, stop=Stop())
        self._work: Callable[[], Finding] = functools.partial(_found, job, context)

    def bound(self, key: str, alpha: float) -> float:
        """Return the audit's bound of that name at an error probability."""
        return self._finding.bounds[key](alpha)

    @functools.cached_property
    def _finding(self) -> Finding:
        return self._work()
