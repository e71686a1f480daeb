"""A sweep in words: the names of its two measures, and its rows for tables."""

from typing import Final

from ldpaudit.commands.sweep.result import Sweep
from ldpaudit.commands.sweep.summary import Mean, Setting
from ldpaudit.commands.utility.scores import SQUARED_ERROR
from ldpaudit.reports.text.numbers import DIGITS, exactly, number
from ldpaudit.reports.text.wording import PUBLISH
from ldpaudit.result.access import CONFIDENTIAL
from ldpaudit.terminal import say, show

_LEAKAGE: Final = ("attack.best.accuracy", "numeric.best.within_5")


def leakage_of(setting: Setting) -> Mean | None:
    """Return the measure of leakage; None where there is none.

    Groups of numeric labels differ between mechanisms, so guesses of numbers are compared by how
    many lie within 5 % of the declared range.
    """
    numeric = setting.test is not None and setting.test.id == SQUARED_ERROR
    return setting.mean(_LEAKAGE[numeric])


def leakage_words(sweep: Sweep) -> str:
    """Return the name of the measure of leakage."""
    if sweep.request.numeric:
        return "strongest guess: within 5 % of the range"
    return "strongest attack: accuracy"


def utility_words(sweep: Sweep) -> str:
    """Return the name of the measure of utility."""
    return "test squared error" if sweep.request.numeric else "test accuracy"


def cell(mean: Mean | None) -> str:
    """Return a number with its interval; a one-sided bound is marked."""
    if mean is None:
        return "–"
    if mean.low is None and mean.high is None:
        return number(mean.value)
    if mean.high is None:
        return f"≥ {number(mean.value, 'down')}"
    if mean.low is None:
        return f"≤ {number(mean.value, 'up')}"
    return f"{number(mean.value)} [{number(mean.low, 'down')}, {number(mean.high, 'up')}]"


def headers(sweep: Sweep) -> tuple[str, ...]:
    """Return the headers of :func:`setting_row`."""
    words = (leakage_words(sweep), utility_words(sweep))
    return ("Mechanism", "Value", "ε (nats)", "Verdict", "Publish", "Passed", *words)


def setting_row(setting: Setting) -> tuple[str, ...]:
    """Return a setting as a row."""
    return (
        setting.mechanism,
        setting.value_text,
        "–" if setting.epsilon is None else exactly(setting.epsilon, DIGITS),
        setting.verdict,
        PUBLISH[setting.decision],
        f"{setting.passes} of {setting.draws}",
        cell(leakage_of(setting)),
        cell(setting.test),
    )


def print_summary(sweep: Sweep, *, quiet: bool) -> None:
    """Print the least noise of each mechanism, then every setting."""
    if not quiet:
        say(CONFIDENTIAL)
    for least in sweep.least:
        say(least.sentence())
    if quiet:
        return
    show("Every setting", headers(sweep), [setting_row(s) for s in sweep.settings])
    for setting in sweep.settings:
        if setting.failed:
            say(f"  {'not measured':<12} {setting.mechanism}: {setting.failed[0]}")
    if sweep.reference is not None:
        say(f"\n  learnt from the true labels: {number(float(sweep.reference['value']))}")
    for text in sweep.warnings:
        say(f"  {'warning':<12} {text}")
    say("Simulated draws; nothing was released.")
