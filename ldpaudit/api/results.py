"""From released files and options to a result: of private columns and releases, in one tree."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldpaudit.api.planning import cluster_of, plan_of, policy_of, seed_of
from ldpaudit.api.reading import notes_of, read_columns
from ldpaudit.api.several import read_repeated, several
from ldpaudit.options import AuditOptions
from ldpaudit.result import AuditRecord, AuditResult, Note
from ldpaudit.running.finished import Finished
from ldpaudit.running.progress import NoProgress
from ldpaudit.running.stopping import Stop

if TYPE_CHECKING:
    from ldpaudit.audits.interface import Plan
    from ldpaudit.judging.policy import Policy
    from ldpaudit.pipeline.nodes import Node
    from ldpaudit.release import Release
    from ldpaudit.running.scratch import Scratch


@contextmanager
def unwritten_result(release: Any, options: AuditOptions) -> Iterator[AuditResult]:
    """Give the result of an audit; finished parts are kept until the block has ended well."""
    from ldpaudit.datasets.beside.slices import read_slices
    from ldpaudit.pipeline import Running, audit
    from ldpaudit.running.scratch import Scratch

    options.check()
    stop = options.stop or Stop.after(options.timeout)
    policy, progress = policy_of(options), options.progress or NoProgress()
    every = several(release) or (release,)
    with Scratch() as scratch, cluster_of(options, scratch, options.progress) as tasks:
        node, notes = _read(every, options, scratch)
        seed = seed_of(options, node.leaves[0].sha256)
        place = every[0] if len(every) == 1 else every
        slices = read_slices(place, options.slices, options) if len(every) == 1 else ()
        plan = plan_of(options, seed, slices)
        finished = _finished(node.leaves, place, options, plan, policy)
        running = Running(progress, options.command, finished, stop, tasks)
        asked: dict[str, Any] = {"only": options.only, "skip": options.skip, "notes": notes}
        result = audit(node, plan, policy, **asked, running=running)
    yield result
    if not any(record.status == "stopped" for record in _records(result)):
        finished.remove()


def _read(
    releases: tuple[Any, ...], options: AuditOptions, scratch: "Scratch"
) -> "tuple[Node, tuple[Note, ...]]":
    """Return the tree of what was given, and what its reader says."""
    from ldpaudit.datasets.beside.canaries import with_canaries
    from ldpaudit.datasets.beside.public_posterior import with_public_posterior
    from ldpaudit.datasets.private_columns import ColumnsReport
    from ldpaudit.pipeline import node_of, nodes_of

    progress = options.progress or NoProgress()
    if len(releases) > 1:
        files, notes = read_repeated(releases, options, scratch, progress)
        return nodes_of(files, options.answers), notes
    reading = read_columns(releases[0], options, scratch)
    for remark in reading.remarks:
        progress.remark(remark)
    if isinstance(reading, ColumnsReport):
        return node_of(reading.file), notes_of(reading)
    release = with_public_posterior(reading.release, options.public_posterior, options)
    return node_of(with_canaries(release, options.canaries, options)), notes_of(reading)


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
