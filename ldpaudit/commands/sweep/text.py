"""A sweep in words: what its two measures are called, and its rows for tables."""

from typing import Final

from ldpaudit.commands.sweep.result import Sweep
from ldpaudit.commands.sweep.summary import Mean, Setting
from ldpaudit.commands.utility.scores import SQUARED_ERROR
from ldpaudit.reports.text.numbers import number
from ldpaudit.terminal import say, show

_LEAKAGE: Final = ("attack.best.accuracy", "numeric.best.within_5")


def leakage_of(setting: Setting) -> Mean | None:
    """Return what leakage is measured by; None where it was not.

    Groups of numeric labels differ from mechanism to mechanism, so guesses of numbers are compared
    by how many lie within 5 % of the declared range.
    """
    numeric = setting.test is not None and setting.test.id == SQUARED_ERROR
    return setting.mean(_LEAKAGE[numeric])


def leakage_words(found: Sweep) -> str:
    """Return what leakage is measured by."""
    if found.request.numeric:
        return "strongest guess: within 5 % of the range"
    return "strongest attack: accuracy"


def utility_words(found: Sweep) -> str:
    """Return what utility is measured by."""
    return "test squared error" if found.request.numeric else "test accuracy"


def value_text(setting: Setting) -> str:
    """Return the parameter's value."""
    symbol = "λ" if setting.parameter == "lambda" else "ε"
    return f"{symbol} = {setting.value:.6g}"


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


def headers(found: Sweep) -> tuple[str, ...]:
    """Return the headers of :func:`setting_row`."""
    words = (leakage_words(found), utility_words(found))
    return ("Mechanism", "Value", "ε (nats)", "Verdict", "Passed", *words)


def setting_row(setting: Setting) -> tuple[str, ...]:
    """Return a setting as a row."""
    return (
        setting.mechanism,
        value_text(setting),
        "–" if setting.epsilon is None else number(setting.epsilon),
        setting.verdict,
        f"{setting.passes} of {setting.draws}",
        cell(leakage_of(setting)),
        cell(setting.test),
    )


def print_summary(found: Sweep, *, quiet: bool) -> None:
    """Print the least noise of each mechanism, then every setting."""
    for least in found.least:
        say(least.sentence())
    if quiet:
        return
    show("Every setting", headers(found), [setting_row(s) for s in found.settings])
    for setting in found.settings:
        if setting.failed:
            say(f"  {'not measured':<12} {setting.mechanism}: {setting.failed[0]}")
    if found.reference is not None:
        say(f"\n  learnt from the true labels: {float(found.reference['value']):.4g}")
    for text in found.warnings:
        say(f"  {'warning':<12} {text}")
    say("Simulated draws; nothing was released.")
