"""What ``ldpaudit compare`` does: compare, write, and say what came of it."""

from functools import partial

from ldpaudit.commands.compare.request import CompareRequest
from ldpaudit.commands.compare.work import compare
from ldpaudit.commands.outputs import Outputs
from ldpaudit.comparison import Comparison, Difference
from ldpaudit.options import input_files
from ldpaudit.reports.pages.comparison import comparison_json, render_comparison
from ldpaudit.reports.text.numbers import number, percent
from ldpaudit.result import Verdict
from ldpaudit.terminal import progress_on_terminal, say

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


def print_summary(comparison: Comparison, *, quiet: bool) -> None:
    """Print the sentence, the verdicts and the differences."""
    say(comparison.sentence)
    if quiet:
        return
    for print_, result in zip(comparison.fingerprints, comparison.releases, strict=True):
        say(f"  {print_.letter:<12} {result.verdict}: {result.sentence}")
    for difference in comparison.differences:
        say(f"  {difference.a + ' to ' + difference.b:<12} {_words(difference)}")
    for note in comparison.notes:
        if note.level == "warning":
            say(f"  {'warning':<12} {note.text}")


def _words(difference: Difference) -> str:
    text = f"{difference.id} {number(difference.value)}"
    if difference.level is None:
        return f"{text} (exact)"
    low, high = number(difference.low, "down"), number(difference.high, "up")
    paired = "paired" if difference.paired else "not paired"
    level = percent(difference.level)
    return f"{text}, {low} to {high} ({difference.kind}, {level}, {paired})"
