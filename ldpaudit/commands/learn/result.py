"""How well a learner does on a release: the result of ``ldpaudit learn`` and its summary."""

from typing import Final

from ldpaudit.result import Estimate, Frozen
from ldpaudit.result.access import CONFIDENTIAL
from ldpaudit.result.numbers import number, percent
from ldpaudit.terminal import say

# Of squared errors, which may be large.
_DIGITS: Final = 5


class StoredRelease(Frozen):
    """What was learnt from.

    Attributes
    ----------
    name
        The file's name.
    rows
        Its rows.
    """

    name: str
    rows: int


class Learnt(Frozen):
    """The score of a learner on test rows.

    Attributes
    ----------
    access
        Who may see it.
    schema_version
        The version of this form.
    release
        What was learnt from.
    mechanism
        The name of its mechanism.
    learner
        The learner.
    correction
        How its loss is corrected for the noise, in words.
    test_rows
        Rows that it was tested on.
    score
        Its accuracy, or its squared error.
    reference
        The same of that learner on the true labels; null where they were not given.
    constant
        What the best constant answer reaches.
    beside
        The constant's score, the area under the ROC curve of classes, and the Poisson deviance
        where the model was trained for it.
    warnings
        Sentences for people.
    """

    access: str
    schema_version: str
    release: StoredRelease
    mechanism: str
    learner: str
    correction: str
    test_rows: int
    score: Estimate
    reference: Estimate | None
    constant: float
    beside: tuple[Estimate, ...]
    warnings: tuple[str, ...]


def print_summary(learnt: Learnt, *, quiet: bool) -> None:
    """Print the score, and what to compare it with; quiet: the score only."""
    if not quiet:
        say(CONFIDENTIAL)
    say(f"{learnt.score.title}: {_shown(learnt.score)}.")
    if quiet:
        return
    line = "  {:<12} {}".format
    say(
        line(
            "learner",
            f"{learnt.learner}, trained on {learnt.release.rows:,} rows; {learnt.correction}",
        )
    )
    gain = ""
    if learnt.score.unit != "proportion" and learnt.constant > 0:
        below = 1 - learnt.score.value / learnt.constant
        side = "below" if below >= 0 else "above"
        gain = f"; the model is {100 * abs(below):.3g} % {side} it"
    if learnt.reference is not None:
        say(line("true labels", f"{_shown(learnt.reference)} by the same learner"))
    constant = _plain(learnt.constant, learnt.score)
    say(line("constant", f"{constant} by the best single answer{gain}"))
    for one in learnt.beside[1:]:
        name = "AUC" if one.id == "test_auc" else "deviance"
        say(line(name, f"{number(one.value)}: {one.title.replace('Area', 'area')}"))
    for warning in learnt.warnings:
        say(line("warning", warning))


def _shown(score: Estimate) -> str:
    assert score.low is not None
    assert score.high is not None
    assert score.level is not None
    ends = f"{_plain(score.low, score)} to {_plain(score.high, score)}"
    return f"{_plain(score.value, score)} ({percent(score.level)}: {ends}; {score.n:,} test rows)"


def _plain(value: float, score: Estimate) -> str:
    return f"{100 * value:.2f} %" if score.unit == "proportion" else number(value, digits=_DIGITS)
