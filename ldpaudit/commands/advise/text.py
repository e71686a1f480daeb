"""Advice on the terminal: the answer, the recommendations, each with its command."""

from collections.abc import Iterator
from typing import Final

from ldpaudit.commands.advise.result import NOT_RELEASED, Advice, Choice, Recommendation
from ldpaudit.reports.text.numbers import number, percent
from ldpaudit.result import Estimate
from ldpaudit.terminal import say, show

HEADERS: Final = ("", "Mechanism", "ε (nats)", "Utility", "Leakage", "Sure")


def print_advice(advice: Advice, *, quiet: bool) -> None:
    """Print what to release, and the command to make it."""
    say(advice.sentence)
    if quiet:
        for recommendation in advice.recommendations[:1]:
            say(recommendation.command)
        return
    for dropped in advice.dropped:
        say(f"  {'left out':<12} {', '.join(dropped.columns)}: {dropped.reason}")
    if advice.recommendations:
        show(
            "What the policy lets pass",
            HEADERS,
            [
                row
                for place, one in enumerate(advice.recommendations, 1)
                for row in rows(place, one)
            ],
        )
        for place, one in enumerate(advice.recommendations, 1):
            say(f"  {place}. {one.command}")
    for text in advice.notes:
        say(f"  {'note':<12} {text}")
    say(f"All intervals hold together at {percent(advice.level)}. {NOT_RELEASED}")


def rows(place: int, recommendation: Recommendation) -> Iterator[tuple[str, ...]]:
    """Yield a recommendation as rows, one for each private column."""
    for choice in recommendation.choices:
        yield (
            str(place),
            choice.candidate.name,
            number(choice.candidate.epsilon),
            f"{choice.utility.title.lower()}: {shown(choice.utility)}",
            "; ".join(f"{one.title.lower()}: {shown(one)}" for one in choice.leakage),
            sureness(choice),
        )


def sureness(choice: Choice) -> str:
    """Return how sure the numbers are, and whether a release was simulated."""
    drawn = "simulated" if choice.simulation is not None else "not simulated"
    return f"{choice.kind}, {drawn}"


def shown(estimate: Estimate) -> str:
    """Return a number with its interval."""
    if estimate.low is None or estimate.high is None:
        return number(estimate.value)
    low, high = number(estimate.low, "down"), number(estimate.high, "up")
    return f"{number(estimate.value)} [{low}, {high}]"
