"""What ``ldpaudit selftest`` prints."""

from ldpaudit.commands.selftest.figures import CHANCE, LEVEL, Figure
from ldpaudit.commands.selftest.result import Selftest
from ldpaudit.reports.text.numbers import percent
from ldpaudit.terminal import say


def print_summary(tested: Selftest, *, quiet: bool) -> None:
    """Print whether the installation works, and each figure; quiet: the sentence only."""
    say(tested.sentence)
    if quiet:
        return
    for figure in tested.figures:
        say(f"  {figure.finding:<14} {_shown(figure)}")
    if len(tested.outcomes) < tested.planned:
        say(f"  {'ended early':<14} {len(tested.outcomes):,} of {tested.planned:,} releases")
    say(
        f"Intervals are at {percent(LEVEL)} (Clopper–Pearson). A good installation is said not to "
        f"work in at most one self-test of {1 / CHANCE:,.0f}. Seed {tested.seed}."
    )


def _shown(figure: Figure) -> str:
    low, high = figure.interval
    said = f"{figure.title}: {figure.count:,} of {figure.n:,}"
    documented = f"documented: {figure.side} {percent(figure.stated)}"
    return f"{said} ({100 * low:.1f} to {100 * high:.1f} %; {documented})"
