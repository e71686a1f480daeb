"""What ``ldpaudit compare`` does: compare, write, and say what came of it."""

from functools import partial

from ldpaudit.commands.compare.request import CompareRequest
from ldpaudit.commands.compare.text import print_summary
from ldpaudit.commands.compare.work import compare
from ldpaudit.commands.outputs import Outputs
from ldpaudit.comparison import Comparison
from ldpaudit.options import input_files
from ldpaudit.reports.pages.comparison import comparison_json, render_comparison
from ldpaudit.result import Verdict
from ldpaudit.terminal import progress_on_terminal

_ORDER: tuple[Verdict, ...] = ("fail", "inconclusive", "pass")


def compare_releases(
    request: CompareRequest, outputs: Outputs, *, quiet: bool = False
) -> Comparison:
    """Compare, write the page and the result, and print the summary."""
    request.check()
    outputs.check(input_files(request))
    with progress_on_terminal(quiet) as progress:
        comparison = compare(request, progress)
        progress.step("page")
        outputs.write(partial(comparison_json, comparison), partial(render_comparison, comparison))
    print_summary(comparison, quiet=quiet)
    if not quiet:
        outputs.announce()
    return comparison


def worst_verdict(comparison: Comparison) -> Verdict:
    """Return the worst verdict among the releases: fail, then inconclusive, then pass."""
    found = {result.verdict for result in comparison.releases}
    return next(verdict for verdict in _ORDER if verdict in found)
