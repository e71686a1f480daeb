"""Running audits: which apply, what each may see, and which end early."""

import importlib.metadata
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Final, get_args

from ldpaudit.attacks import given_attacks, taken_names
from ldpaudit.audits.assumptions.standing import as_it_stands, one_row_of_each_group
from ldpaudit.audits.interface import Audit, AuditContext, Counts, Memo, Need, Plan
from ldpaudit.audits.listing import BUILT_IN
from ldpaudit.errors import (
    InputError,
    InsufficientDataError,
    LdpAuditError,
    MissingDependencyError,
    refuse,
)
from ldpaudit.mechanisms import Mechanism
from ldpaudit.mechanisms.listing import BUILT_IN as BUILT_IN_MECHANISMS
from ldpaudit.plugins import (
    check_name,
    check_one,
    contained,
    read_only,
    refused,
    unloadable,
    watched,
)
from ldpaudit.result import (
    AuditRecord,
    Curve,
    Estimate,
    Finding,
    Histogram,
    Note,
    PlugIn,
    PlugInKind,
)
from ldpaudit.result.dictionary import meaning
from ldpaudit.result.misstated import misstated
from ldpaudit.result.plug_ins import given, used
from ldpaudit.work.memory import FIRST_ROWS, RUN, give_back
from ldpaudit.work.progress import InTurn, Stop, Stopped
from ldpaudit.work.tasks import together, waited

# Why an audit is skipped that needs what the release does not have.
_LACKS: Final[Mapping[str, str]] = {
    "labels": "every row has the same released label, which reveals nothing of the true ones",
    "rows": "labels were released in bags, not row by row; see the audit 'aggregates'",
    "truth": "it needs the true labels (--truth)",
}


# What a finding holds, and the ends that a side has.
_FOUND: Final[Mapping[str, type]] = {
    "estimates": Estimate,
    "curves": Curve,
    "histograms": Histogram,
    "notes": Note,
}
_ENDS: Final = {"low": ("lower", "two-sided"), "high": ("upper", "two-sided")}

# What an audit raises to be skipped.
_SKIPPED: Final = (InsufficientDataError, MissingDependencyError)
# Between what the numbers of a unit lie, differences among them.
_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "proportion": (-1.0, 1.0),
    "p-value": (0.0, 1.0),
    "rows": (0.0, math.inf),
    "people": (0.0, math.inf),
}
_SHARE: Final = (0.0, 1.0)
# What rounding may add to a number.
_SLACK: Final = 1e-9

_METHODS: Final = ("unavailable", "run")

# Audits that need nothing of what others compute.
_ALONE: Final = frozenset(("seeds",))


def run_audits(
    chosen: Mapping[str, str],
    context: AuditContext,
    besides: Sequence[Callable[[AuditContext], Any]] = (),
) -> tuple[tuple[AuditRecord, ...], tuple[Finding, ...], tuple[Any, ...]]:
    """Return of each audit that was asked for whether it ran, what it found, and what is besides.

    ``chosen``: places, ``MODULE:NAME``, by id. ``besides``: what else is computed of the context;
    it takes part in no phase, and the end of the audit's time does not end it. Raise
    LdpAuditError if an audit failed for another reason than too few rows, or a library that is
    not installed.

    Audits run side by side on as many processors as the plan says, with the same results as one
    after another.
    """
    audits = {name: _loaded(name, path) for name, path in chosen.items()}
    reasons = {name: _unavailable(name, audit, context) for name, audit in audits.items()}
    at_work = [name for name in audits if reasons[name] is None]
    context.progress.phases([name.replace("-", " ") for name in at_work])
    stop, turns = context.run.stop, InTurn(context.progress)
    stop.obeyed = False

    def seen(place: int) -> AuditContext:
        return replace(context, run=replace(context.run, progress=turns.of(place)))

    def run(place: int, name: str) -> tuple[AuditRecord, Finding]:
        with stop.part():
            start, idle, finding, reason = time.perf_counter(), waited(), Finding(), None
            own = seen(place)
            try:
                own.progress.phase(place)
                finding = _found(name, audits[name], own)
            except Stopped:
                stop.obeyed = True
            except _SKIPPED as error:
                reason = str(error).strip() or _unsaid(error)
            except BaseException:
                turns.end(after=place)
                raise
            finally:
                turns.done(place)
                give_back()
            seconds = time.perf_counter() - start - (waited() - idle)
            return _record(name, reason, stop if stop.obeyed else None, seconds), finding

    def compute(place: int, one: Callable[[AuditContext], Any]) -> Any:
        with stop.part(told=True):
            try:
                turns.check(place)
                return one(seen(place))
            finally:
                turns.done(place)

    pieces: list[Callable[[], Any]] = [partial(run, *one) for one in enumerate(at_work)]
    pieces += [partial(compute, *one) for one in enumerate(besides, len(at_work))]
    # The first audit computes what most others wait for; these need not wait.
    others = [place for place, name in enumerate(at_work) if name in _ALONE]
    first = [0, *range(len(at_work), len(pieces)), *others]
    done = list(together(pieces, context.plan.threads, turns.end, first[: len(pieces)]))
    ran = dict(zip(at_work, done, strict=False))
    found = [ran.get(name) or (_record(name, reasons[name]), Finding()) for name in audits]
    records, findings = zip(*found, strict=True) if found else ((), ())
    return tuple(records), tuple(findings), tuple(done[len(at_work) :])


def _unsaid(error: LdpAuditError) -> str:
    """Return why an audit is skipped that does not say so itself."""
    few = isinstance(error, InsufficientDataError)
    return "there are too few rows" if few else "a library that it needs is not installed"


def _record(
    name: str, reason: str | None, stop: Stop | None = None, seconds: float = 0.0
) -> AuditRecord:
    """Return whether an audit ran; ``stop``: what ended it."""
    status = "ran" if reason is None else "skipped"
    if reason is None and stop is not None:
        status, reason = "stopped", stop.reason
    said = {"id": name, "status": status, "reason": reason or "", "seconds": round(seconds, 3)}
    return AuditRecord.model_validate(said)


def load(path: str) -> Audit:
    """Return the audit at a place, which may be its class."""
    entry = importlib.metadata.EntryPoint(name="", value=path, group="ldpaudit.audits")
    found = entry.load()
    audit: Audit = found() if isinstance(found, type) else found
    return audit


def _loaded(name: str, path: str) -> Audit:
    if name in BUILT_IN:
        return load(path)
    check_one("audit", name)
    try:
        with contained():
            audit = load(path)
    except (Exception, SystemExit) as error:
        raise unloadable("audit", name, error) from error
    check_name("audit", name, getattr(audit, "id", None))
    lacks = [method for method in _METHODS if not callable(getattr(audit, method, None))]
    refuse(lacks, f"The plug-in {name!r} (audit) must have the methods {' and '.join(_METHODS)}.")
    return audit


def _watched(name: str) -> AbstractContextManager[None]:
    otherwise = f"leave it out with --skip {name}, or run again with --debug"
    return (
        nullcontext()
        if name in BUILT_IN
        else watched("audit", name, otherwise, _SKIPPED, misstated)
    )


def _own_numbers(name: str, finding: Finding) -> Finding:
    """Return what an audit found; of another package's each number has a name of its own."""
    if name in BUILT_IN:
        return finding
    part = f"The plug-in {name!r} (audit)"
    for field, kind in _FOUND.items():
        one = next((one for one in getattr(finding, field) if not isinstance(one, kind)), None)
        refuse(
            one is not None,
            f"{part} must find {field} of ldpaudit.doors. Got {type(one).__name__} instead.",
        )
    ids = [part.id for part in (*finding.estimates, *finding.curves, *finding.histograms)]
    for identifier in (*ids, *finding.bounds):
        why = None
        if meaning(identifier) is not None:
            why = "is the name of a built-in one"
        elif not identifier.startswith(f"{name}."):
            why = "is not"
        elif ids.count(identifier) > 1:
            why = "is the name of two"
        refuse(
            why,
            f"{part} must call its numbers {name}.…, each otherwise; {identifier!r} {why}.",
        )
    sided: tuple[Estimate | Curve, ...] = (*finding.estimates, *finding.curves)
    for number in sided:
        lacks = [end for end, sides in _ENDS.items() if number.side in sides]
        lacks = [end for end in lacks if getattr(number, end) is None]
        refuse(
            lacks,
            f"{part} states {number.id!r} as {number.side}, without its {' and '.join(lacks)} end.",
        )
        wrong = _impossible(number)
        refuse(wrong, f"{part} states {number.id!r}, and {wrong}.")
    return finding


def _impossible(number: Estimate | Curve) -> str | None:
    """Say why a number cannot be what it is stated to be; None where it can."""
    count = number.count if isinstance(number, Estimate) else None
    share = count is not None and number.unit == "proportion"
    if share and count is not None and number.n is not None and count > number.n:
        return f"a share of {number.n:,} rows cannot count {count:,}"
    ends = [_values(part) for part in (number.low, number.high)]
    if number.kind == "certified" and (math.inf in ends[0] or -math.inf in ends[1]):
        return "no bound that is certified is infinite"
    least, most = _SHARE if share else _RANGES.get(number.unit, (-math.inf, math.inf))
    every = [*_values(number.value), *ends[0], *ends[1]]
    if number.axis == "epsilon" and min(every, default=0.0) < 0:
        return "no ε is negative; a bound that finds nothing is 0"
    if any(not least - _SLACK <= one <= most + _SLACK for one in every):
        return f"a number of the unit {number.unit!r} lies from {least:g} to {most:g}"
    return None


def _values(part: float | tuple[float, ...] | None) -> tuple[float, ...]:
    if part is None:
        return ()
    return part if isinstance(part, tuple) else (part,)


def _stated(name: str, audit: Audit) -> tuple[Counts, tuple[Need, ...]]:
    """Return what an audit counts and needs (InputError where that is nothing it may)."""
    counts: Any = getattr(audit, "counts", "people")
    needs: Any = getattr(audit, "needs", ("labels", "rows"))
    if counts not in get_args(Counts):
        raise InputError(f"The audit {name!r} must count 'people' or 'rows'.")
    if not isinstance(needs, tuple) or any(need not in get_args(Need) for need in needs):
        known = ", ".join(map(repr, get_args(Need)))
        raise InputError(f"What the audit {name!r} needs must be a tuple of some of {known}.")
    return counts, needs


def _unavailable(name: str, audit: Audit, context: AuditContext) -> str | None:
    release, (_, needs) = context.release, _stated(name, audit)
    with _watched(name):
        has = {"labels": not release.constant, "rows": release.bags is None}
        lacking = [need for need, there in has.items() if need in needs and not there]
        reason = _LACKS[lacking[0]] if lacking else audit.unavailable(context)
    words = isinstance(reason, str) and reason.strip()
    refuse(
        reason is not None and not words,
        f"The audit {name!r} must say in words why it is unavailable, or None.",
    )
    # True labels are asked for last: where an audit does not apply, giving them would not help.
    lacks = reason is None and "truth" in needs and release.truth is None
    return _LACKS["truth"] if lacks else reason


def _found(name: str, audit: Audit, context: AuditContext) -> Finding:
    """Return what an audit finds in what it may see: what it counts, or all rows in their order."""
    counts, needs = _stated(name, audit)
    try:
        with _watched(name):
            if "order" in needs and context.whole is not None:
                context = context.on_rows(None, memo=context.once("in order", Memo))
            if counts == "people":
                context = one_row_of_each_group(context)
            if name not in BUILT_IN:
                context = _unchangeable(context)
            finding = audit.run(context)
            refuse(
                not isinstance(finding, Finding),
                f"The plug-in {name!r} (audit) must return a Finding. Got "
                f"{type(finding).__name__} instead.",
            )
            finding = _own_numbers(name, finding)
            if counts == "people":
                finding = as_it_stands(context, finding)
            return finding.in_section(name)
    except (LdpAuditError, MemoryError):
        raise
    except Exception as error:
        raise LdpAuditError(
            f"Internal fault in the audit {name!r} ({type(error).__name__}); leave it out with "
            f"--skip {name}, or run again with --debug and report it."
        ) from error


def _unchangeable(context: AuditContext) -> AuditContext:
    """Return a context whose rows, and all rows of the file, nobody can write to."""
    whole = None if context.whole is None else _unchangeable(context.whole)
    release, plan = read_only(context.release), read_only(context.plan)
    return replace(context, release=release, plan=plan, whole=whole)


def part_notes(context: AuditContext) -> Iterator[Note]:
    """Yield notes on the rows that were looked at, where those are not all."""
    guesses = context.run.guesses
    if context.whole is not None:
        part = f"{len(context.release):,} of the {len(context.whole.release):,} rows"
        yield Note.info(
            "reading",
            f"Audits looked at {part}: the first {FIRST_ROWS:,}, and runs of {RUN} that follow "
            "each other, drawn blind to all labels. Unless rows share noise or belong together "
            "(--group), labels were counted in all rows, and neighbours looked for there.",
        )
    if context.release.groups is not None:
        yield Note.info(
            "reading",
            f"Losses{', guesses of numbers' if guesses is None else ''} and Rényi divergences were "
            "measured on one row of each group (--group, a repeated --id), drawn at random: rows "
            "that belong together count once.",
        )


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
        # A reader is loaded for a file of an unknown ending alone.
        "reader": (),
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
    return {
        "attack": taken_names(),
        "audit": BUILT_IN,
        "mechanism": BUILT_IN_MECHANISMS,
        "reader": (),
    }
