"""What ``ldpaudit learn`` prints."""

from ldpaudit.commands.learn.result import Learnt
from ldpaudit.reports.text.numbers import number, percent
from ldpaudit.result import Estimate
from ldpaudit.result.access import CONFIDENTIAL
from ldpaudit.terminal import say


def print_summary(learnt: Learnt, *, quiet: bool) -> None:
    """Print the score, and what to compare it with; quiet: the score only."""
    if not quiet:
        say(CONFIDENTIAL)
    say(f"{learnt.score.title}: {_shown(learnt.score)}.")
    if quiet:
        return
    line = "  {:<12} {}".format
    say(line("learner", f"{learnt.learner}, trained on {learnt.rows:,} rows; {learnt.correction}"))
    if learnt.reference is not None:
        say(line("true labels", f"{_shown(learnt.reference)} by the same learner"))
    say(line("constant", f"{_plain(learnt.constant, learnt.score)} by the best single answer"))
    for warning in learnt.warnings:
        say(line("warning", warning))


def _shown(score: Estimate) -> str:
    assert score.low is not None
    assert score.high is not None
    assert score.level is not None
    ends = f"{_plain(score.low, score)} to {_plain(score.high, score)}"
    return f"{_plain(score.value, score)} ({percent(score.level)}: {ends}; {score.n:,} test rows)"


def _plain(value: float, score: Estimate) -> str:
    return f"{100 * value:.2f} %" if score.unit == "proportion" else number(value)
