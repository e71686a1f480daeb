"""The work of ``sweep``: check everything before any point is measured, then do the points."""

from collections.abc import Iterator
from contextlib import contextmanager

from ldpaudit.api import policy_of
from ldpaudit.commands.privatize.columns.exact import DecidingColumns
from ldpaudit.commands.sweep.checks import check_sweep
from ldpaudit.commands.sweep.folder import SweepFolder, manifest
from ldpaudit.commands.sweep.points.simulation import mechanism_at
from ldpaudit.commands.sweep.points.tables import SweepTables, read_tables
from ldpaudit.commands.sweep.points.workbench import Setup
from ldpaudit.commands.sweep.request import SweepRequest
from ldpaudit.commands.sweep.result import Sweep
from ldpaudit.commands.sweep.run import SweepRun
from ldpaudit.datasets.formats.watching import unchanged
from ldpaudit.errors import OutputError, PolicyError
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.mechanisms import traits_of
from ldpaudit.pipeline import chosen_audits
from ldpaudit.running.progress import NoProgress, Progress
from ldpaudit.running.scratch import Scratch


@unchanged()
def sweep(request: SweepRequest, progress: Progress | None = None) -> Sweep:
    """Simulate, audit and learn at every point of a grid.

    Raises
    ------
    LdpAuditError
        One line about what is wrong; the result names points that cannot be measured, unless there
        is no other.
    """
    progress = progress or NoProgress()
    if request.out is not None and request.out.is_file():
        raise OutputError(f"{request.out.name} is a file; --out needs a folder.")
    check_sweep(request)
    policy = _policy(request)
    progress.step("reading the data")
    tables = read_tables(request, progress=progress)
    _check_data(tables)
    options = manifest(request, tables.seed, None if policy is None else policy.sha256)
    with _folder(request) as folder:
        folder.open(options, resume=request.resume)
        run = SweepRun(request, folder, progress)
        run.recall()
        test_rows = None if isinstance(tables.test, str) else int(tables.test.num_rows)
        facts = (tables.training.num_rows, test_rows, tables.seed)
        del tables  # The workers read the data themselves.
        run.go(Setup(request, facts[2], policy, folder.generator))
        return run.result((policy or default_policy()).audit.confidence, *facts)


def _policy(request: SweepRequest) -> Policy | None:
    chosen_audits(request.only, request.skip)
    policy = policy_of(request)
    claimed = None if policy is None or policy.claim is None else policy.claim.mechanism
    if claimed is not None and set(request.mechanisms) != {claimed}:
        raise PolicyError(
            f"The policy claims the mechanism {claimed!r}; leave it out of [claim] to compare "
            f"others by it."
        )
    return policy


def _check_data(tables: SweepTables) -> None:
    """Check labels, mechanisms and columns as privatize would, before any point is measured."""
    request = tables.request
    for point in request.points():
        if point.repeat == 1:
            mechanism_at(tables, point)
    if any(traits_of(name).feature_values_kept for name in request.mechanisms):
        deciding = DecidingColumns(tables.features.names, request.keep, names=tables.columns)
        for batch in tables.everything.table.to_batches():
            deciding.watch(batch.select(tables.features.names), batch.column(request.label))
        deciding.check()


@contextmanager
def _folder(request: SweepRequest) -> Iterator[SweepFolder]:
    """Give the folder of ``--out``, or a temporary one."""
    with Scratch() as scratch:
        yield SweepFolder(request.out or scratch.path("sweep"))
