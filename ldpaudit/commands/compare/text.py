"""What ``ldpaudit compare`` prints."""

from ldpaudit.reports.text.numbers import number, percent
from ldpaudit.reports.text.wording import publish_line
from ldpaudit.result.comparison import Comparison, Difference
from ldpaudit.terminal import say


def print_summary(comparison: Comparison, *, quiet: bool) -> None:
    """Print the sentence, the verdicts and the differences."""
    say(comparison.sentence)
    if quiet:
        return
    for print_, result in zip(comparison.fingerprints, comparison.releases, strict=True):
        publish = publish_line(result)
        say(f"  {print_.letter:<12} {publish} {result.sentence}")
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
