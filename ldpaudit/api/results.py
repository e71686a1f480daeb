"""From a release and options to a result: of one private column, or of several."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldpaudit.api.planning import cluster_of, plan_of, policy_of, seed_of
from ldpaudit.api.reading import notes_of, read_columns
from ldpaudit.api.several import read_repeated, several
from ldpaudit.options import AuditOptions
from ldpaudit.result import AuditRecord, AuditResult
from ldpaudit.running.finished import Finished
from ldpaudit.running.progress import NoProgress
from ldpaudit.running.stopping import Stop

if TYPE_CHECKING:
    from ldpaudit.audits.interface import Plan
    from ldpaudit.datasets.reading import ReadReport
    from ldpaudit.datasets.vector import VectorReport
    from ldpaudit.judging.policy import Policy
    from ldpaudit.pipeline import Running
    from ldpaudit.release import Release


@contextmanager
def unwritten_result(release: Any, options: AuditOptions) -> Iterator[AuditResult]:
    """Give the result of an audit; finished parts are kept until the block has ended well."""
    from ldpaudit.datasets.beside.slices import read_slices
    from ldpaudit.pipeline import Running
    from ldpaudit.running.scratch import Scratch

    options.check()
    stop = options.stop or Stop.after(options.timeout)
    policy, progress = policy_of(options), options.progress or NoProgress()
    every = several(release)
    if every is not None and len(every) > 1:
        with _repeated_result(every, options, stop) as result:
            yield result
        return
    release = every[0] if every else release
    with Scratch() as scratch, cluster_of(options, scratch, options.progress) as tasks:
        reading = read_columns(release, options, scratch)
        for remark in reading.remarks:
            progress.remark(remark)
        columns = _columns(reading)
        seed = seed_of(options, columns[0].sha256)
        plan = plan_of(options, seed, read_slices(release, options.slices, options))
        finished = _finished(columns, release, options, plan, policy)
        running = Running(progress, options.command, finished, stop, scratch, tasks)
        result = _audited(reading, options, plan, policy, running)
    yield result
    if not any(record.status == "stopped" for record in _records(result)):
        finished.remove()


@contextmanager
def _repeated_result(
    releases: tuple[Any, ...], options: AuditOptions, stop: Stop
) -> Iterator[AuditResult]:
    """Give the result of an audit of several releases of the same people."""
    from ldpaudit.audits.interface import Repeats
    from ldpaudit.pipeline import Running, run_repeats
    from ldpaudit.running.scratch import Scratch

    policy, progress = policy_of(options), options.progress or NoProgress()
    with Scratch() as scratch, cluster_of(options, scratch, options.progress) as tasks:
        joined, notes = read_repeated(releases, options, scratch, progress)
        plan = plan_of(options, seed_of(options, joined.releases[0].sha256))
        finished = _finished(joined.releases, releases, options, plan, policy)
        result = run_repeats(
            Repeats(joined, options.answers),
            plan,
            policy,
            only=options.only,
            skip=options.skip,
            notes=notes,
            running=Running(progress, options.command, finished, stop, scratch, tasks),
        )
    yield result
    if not any(record.status == "stopped" for record in _records(result)):
        finished.remove()


def _columns(reading: "ReadReport | VectorReport") -> "tuple[Release, ...]":
    """Return the private columns that were read."""
    from ldpaudit.datasets.vector import VectorReport

    return reading.vector.columns if isinstance(reading, VectorReport) else (reading.release,)


def _audited(
    reading: "ReadReport | VectorReport",
    options: AuditOptions,
    plan: "Plan",
    policy: "Policy | None",
    running: "Running",
) -> AuditResult:
    from ldpaudit.datasets.beside.canaries import with_canaries
    from ldpaudit.datasets.beside.public_posterior import with_public_posterior
    from ldpaudit.datasets.vector import VectorReport
    from ldpaudit.pipeline import run_audit, run_vector

    asked: dict[str, Any] = {"only": options.only, "skip": options.skip, "notes": notes_of(reading)}
    if isinstance(reading, VectorReport):
        return run_vector(reading.vector, plan, policy, **asked, running=running)
    release = with_public_posterior(reading.release, options.public_posterior, options)
    release = with_canaries(release, options.canaries, options)
    return run_audit(release, plan, policy, **asked, **running.keywords())


def _records(result: AuditResult) -> Iterator[AuditRecord]:
    """Yield whether each audit ran, those of all parts among them."""
    yield from result.audits
    for part in (*result.labels, *result.releases):
        yield from _records(part)


def _finished(
    columns: "tuple[Release, ...]",
    place: Any,
    options: AuditOptions,
    plan: "Plan",
    policy: "Policy | None",
) -> Finished:
    if options.resume is None:
        return Finished()
    from ldpaudit.pipeline import run_info
    from ldpaudit.resume import finished_parts

    info = run_info(plan, "", 0.0, policy)
    known = {"--seed": info.seed, "--threads": info.threads, "versions": info.versions}
    return finished_parts(Path(options.resume), columns, place, options, policy, **known)
