"""What the command does with a sweep: files, and a table on standard output."""

from ldpaudit.commands.outputs import Outputs
from ldpaudit.commands.sweep.page import sweep_page
from ldpaudit.commands.sweep.request import SweepRequest
from ldpaudit.commands.sweep.result import Sweep
from ldpaudit.commands.sweep.text import print_summary
from ldpaudit.commands.sweep.work import sweep
from ldpaudit.errors import OutputError
from ldpaudit.options import input_files
from ldpaudit.reports.json_report import as_json
from ldpaudit.terminal import progress_on_terminal


def run_sweep(request: SweepRequest, outputs: Outputs, *, quiet: bool = False) -> Sweep:
    """Sweep, write the result and the page, and print the answer."""
    _check(request, outputs)
    with progress_on_terminal(quiet) as progress:
        found = sweep(request, progress)
    print_summary(found, quiet=quiet)
    outputs.write(lambda: as_json(found.stored()), lambda: sweep_page(found))
    if not quiet:
        outputs.announce()
    return found


def _check(request: SweepRequest, outputs: Outputs) -> None:
    own = request.out
    inside = own is not None and all(path.parent == own for path in outputs.given())
    if own is not None and own.exists() and not own.is_dir():
        raise OutputError(f"{own.name} is a file; --out needs a folder.")
    if not inside:
        outputs.check(input_files(request))
