"""Advice on the terminal: the answer, the recommendations, each with its command."""

from collections.abc import Sequence
from typing import Final

from ldpaudit.commands.advise.result import NOT_RELEASED, Advice, Choice
from ldpaudit.reports.text.numbers import number, percent
from ldpaudit.result import Estimate
from ldpaudit.result.access import CONFIDENTIAL
from ldpaudit.terminal import say, show

_SHORT: Final = {
    "test_accuracy": "Learner's accuracy",
    "test_squared_error": "Learner's squared error",
    "share_error": "Error of a share",
    "advice.accuracy": "Guessed right",
    "advice.advantage": "Beyond the features",
    "advice.exceedance": "Lose too much",
}
"""Headers for numbers, by their ids."""


def print_advice(advice: Advice, *, quiet: bool) -> None:
    """Print what to release, and the command to make it."""
    if not quiet:
        say(CONFIDENTIAL)
    say(advice.sentence)
    if quiet:
        for recommendation in advice.recommendations[:1]:
            say(recommendation.command)
        return
    for dropped in advice.dropped:
        say(f"  {'left out':<12} {', '.join(dropped.columns)}: {dropped.reason}")
    if advice.recommendations:
        show("What the policy lets pass", *recommended(advice))
        for place, one in enumerate(advice.recommendations, 1):
            say(f"  {place}. {one.command}")
    for text in advice.notes:
        say(f"  {'note':<12} {text}")
    say(f"All intervals hold together at {percent(advice.level)}. {NOT_RELEASED}")


def recommended(advice: Advice) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return headers, and a row for each private column of each recommendation."""
    choices = [
        (str(place) if len(one.choices) == 1 else f"{place}, column {column}", choice)
        for place, one in enumerate(advice.recommendations, 1)
        for column, choice in enumerate(one.choices, 1)
    ]
    ids = dict.fromkeys(one.id for _, choice in choices for one in numbers_of(choice))
    head = ("", "Mechanism", "ε (nats)", *(_SHORT.get(name, name) for name in ids), "Sure")
    return head, [_row(place, choice, list(ids)) for place, choice in choices]


def _row(place: str, choice: Choice, ids: Sequence[str]) -> tuple[str, ...]:
    found = {one.id: shown(one) for one in numbers_of(choice)}
    numbers = (found.get(name, "–") for name in ids)
    candidate = choice.candidate
    return place, candidate.name, number(candidate.epsilon), *numbers, sureness(choice)


def numbers_of(choice: Choice) -> tuple[Estimate, ...]:
    """Return what a release is worth, then what it gives away."""
    return choice.utility, *choice.leakage


def sureness(choice: Choice) -> str:
    """Return how sure the numbers are, and whether a release was simulated."""
    return choice.kind if choice.simulation is not None else f"{choice.kind}, not simulated"


def shown(estimate: Estimate) -> str:
    """Return a number with its interval."""
    if estimate.low is None or estimate.high is None:
        return number(estimate.value)
    low, high = number(estimate.low, "down"), number(estimate.high, "up")
    return f"{number(estimate.value)} [{low}, {high}]"
