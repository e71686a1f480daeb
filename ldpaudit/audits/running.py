"""Running audits: which apply, and which end early."""

import importlib.metadata
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Final, get_args

from ldpaudit.attacks import taken_names
from ldpaudit.attacks.foreign import given_attacks
from ldpaudit.audits.assumptions.standing import as_it_stands, one_row_of_each_group
from ldpaudit.audits.interface import (
    Audit,
    AuditContext,
    Counts,
    Need,
    Plan,
)
from ldpaudit.audits.listing import BUILT_IN
from ldpaudit.errors import InputError, InsufficientDataError, LdpAuditError, MissingDependencyError
from ldpaudit.mechanisms import Mechanism
from ldpaudit.mechanisms.listing import PLACES, SHORT
from ldpaudit.plugins import (
    check_name,
    check_one,
    given,
    read_only,
    refused,
    unloadable,
    used,
    watched,
)
from ldpaudit.result import (
    AuditRecord,
    Finding,
    Note,
    PlugIn,
    PlugInKind,
)
from ldpaudit.result.dictionary import meaning
from ldpaudit.work.progress import Stopped

# Why an audit is skipped that needs what the release does not have.
_LACKS: Final[Mapping[str, str]] = {
    "labels": "every row has the same released label, which reveals nothing of the true ones",
    "rows": "labels were released in bags, not row by row; see the audit 'aggregates'",
    "truth": "it needs the true labels (--truth)",
}


@dataclass(frozen=True)
class _Job:
    """An audit that was asked for.

    ``reason``: why it does not apply; None where it does. ``number``: its place among those that
    apply, from 0.
    """

    name: str
    audit: Audit
    reason: str | None
    number: int


def run_audits(
    chosen: Mapping[str, str], context: AuditContext
) -> tuple[tuple[AuditRecord, ...], tuple[Finding, ...]]:
    """Return of each audit that was asked for whether it ran, and what it found.

    ``chosen``: places, ``MODULE:CLASS``, by id. Raise LdpAuditError if one failed for another
    reason than too few rows, or a library that is not installed.
    """
    jobs: list[_Job] = []
    for name, path in chosen.items():
        audit = _loaded(name, path)
        with _watched(name):
            reason = _unavailable(name, audit, context)
        number = sum(job.reason is None for job in jobs)
        jobs.append(_Job(name, audit, reason, number))
    at_work = [job for job in jobs if job.reason is None]
    context.progress.phases([job.name.replace("-", " ") for job in at_work])
    outcomes = [_outcome(job, context) for job in jobs]
    return tuple(record for record, _ in outcomes), tuple(finding for _, finding in outcomes)


def _outcome(job: _Job, context: AuditContext) -> tuple[AuditRecord, Finding]:
    start, context.run.stop.obeyed = time.perf_counter(), False
    reason, finding = job.reason, Finding()
    if reason is None:
        try:
            context.progress.phase(job.number)
            finding = _found(job, context)
        except Stopped:
            pass
        except (InsufficientDataError, MissingDependencyError) as error:
            reason = str(error)
    status = "ran" if reason is None else "skipped"
    if reason is None and context.run.stop.obeyed:
        status, reason = "stopped", context.run.stop.reason
    seconds = round(time.perf_counter() - start, 3)
    record = AuditRecord.model_validate(
        {"id": job.name, "status": status, "reason": reason or "", "seconds": seconds}
    )
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


def _watched(name: str) -> AbstractContextManager[None]:
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


def _found(job: _Job, context: AuditContext) -> Finding:
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


def _seen(job: _Job, context: AuditContext) -> AuditContext:
    """Return what an audit may see of a release: what it counts, or all rows in their order."""
    if "order" in _needs(job.name, job.audit) and context.views.every_row is not None:
        whole = replace(context.views, every_row=None)
        context = replace(context, release=context.views.every_row, views=whole)
    if _counts(job.name, job.audit) == "people":
        context = one_row_of_each_group(context)
    if job.name not in BUILT_IN:
        return replace(context, release=read_only(context.release))
    return context


def _counts(name: str, audit: Audit) -> Counts:
    """Return what an audit counts (InputError where that is neither people nor rows)."""
    counts: Counts = getattr(audit, "counts", "people")
    if counts not in get_args(Counts):
        raise InputError(f"The audit {name!r} must count 'people' or 'rows'.")
    return counts


def _needs(name: str, audit: Audit) -> tuple[Need, ...]:
    """Return what an audit needs (InputError where that is nothing an audit may need)."""
    needs: object = getattr(audit, "needs", ("labels", "rows"))
    if not isinstance(needs, tuple) or not set(needs) <= set(get_args(Need)):
        known = ", ".join(map(repr, get_args(Need)))
        raise InputError(f"What the audit {name!r} needs must be a tuple of some of {known}.")
    return needs


def taking_part(
    claim: Mechanism,
    plan: Plan,
    records: Iterable[AuditRecord],
    scored: Collection[str],
) -> tuple[PlugIn, ...]:
    """Return the parts of other packages, and the attacks that were given, that took part.

    ``scored``: the attacks that were scored.
    """
    names: dict[PlugInKind, Collection[str]] = {
        "attack": scored,
        "audit": {record.id for record in records if record.status in ("ran", "stopped")},
        "mechanism": {claim.name},
    }
    found = [part for kind in names for part in used(kind, names[kind], _built_in()[kind])]
    for name, one in zip(given_attacks(plan.attacks), plan.attacks, strict=True):
        place = one if isinstance(one, str) else f"{one.__module__}:{one.__qualname__}"
        found.append(given("attack", name, place))
    return tuple(found)


def refusals() -> Iterator[Note]:
    """Yield a warning for each plug-in that has the name of a built-in part."""
    for kind, names in _built_in().items():
        for text in refused(kind, names):
            yield Note.warning("plug-ins", text)


def _built_in() -> dict[PlugInKind, Collection[str]]:
    mechanisms = PLACES.keys() | SHORT.keys()
    return {"attack": taken_names(), "audit": BUILT_IN, "mechanism": mechanisms}
