"""What ``ldpaudit mechanism audit`` prints."""

import math

from ldpaudit.commands.black_box.result import BlackBoxAudit
from ldpaudit.reports.text.numbers import number, percent
from ldpaudit.terminal import say


def print_summary(audit: BlackBoxAudit, *, quiet: bool) -> None:
    """Print the outcome, the verdict first."""
    for sentence in sentences(audit)[: 1 if quiet else None]:
        say(sentence)


def sentences(audit: BlackBoxAudit) -> list[str]:
    """Return the outcome in words, the verdict first."""
    first, second = (audit.inputs[i] for i in audit.pair)
    delta = f" (δ = {audit.claim.delta:g})" if audit.claim.delta else ""
    return [
        _headline(audit, delta),
        f"  certified    ε ≥ {_down(audit.epsilon_lower)}{delta} at {percent(audit.confidence)} "
        f"confidence, from inputs {first!r} and {second!r}: {audit.right:,} of "
        f"{audit.right + audit.wrong:,} guesses right in {audit.candidates:,} outputs",
        *_remarks(audit),
    ]


def _headline(audit: BlackBoxAudit, delta: str) -> str:
    claimed = audit.claim.epsilon
    if claimed is None:
        return "Nothing was claimed, so nothing was judged."
    claim = f"ε = {claimed:g}{delta}"
    if audit.verdict == "pass":
        return f"No violation found: no bound exceeds the claimed {claim}."
    if audit.verdict == "inconclusive":
        return f"Inconclusive: nothing exceeds {claim}, but too little could have."
    if audit.epsilon_lower > claimed:
        proof = f"at least ε = {_down(audit.epsilon_lower)} is certified"
    else:
        assert audit.delta_lower is not None
        proof = f"at that ε at least δ = {_down(audit.delta_lower, 5)} is certified"
    return f"Violation found: the randomizer claims {claim}, but {proof}."


def _remarks(audit: BlackBoxAudit) -> list[str]:
    lines = []
    if audit.claim.epsilon is not None and audit.verdict != "fail":
        lines.append(f"  power        {_power(audit, audit.claim.epsilon)}")
    if audit.exceeds_delta:
        assert audit.delta_lower is not None
        lines.append(f"  certified    δ ≥ {_down(audit.delta_lower, 5)} at the claimed ε")
    if audit.epsilon_lower == 0 and audit.claim.epsilon:
        lines.append(
            "  warning      no two inputs were told apart: does the function know them as "
            f'{type(audit.inputs[0]).__name__}? In a JSON list 0 is a number and "0" a text'
        )
    if audit.opaque:
        lines.append(
            f"  warning      {audit.opaque} entry(ies) of the outputs hardly ever repeat and "
            f"could not be used; if one is a public seed, give --feature-function"
        )
    return lines


def _power(audit: BlackBoxAudit, claimed: float) -> str:
    assert audit.detectable is not None
    if math.isinf(audit.detectable):
        return "no ε would have been found on this event; raise --samples"
    enough = "" if audit.detectable <= claimed + audit.max_excess else "; raise --samples"
    return (
        f"on this event ε = {number(audit.detectable, 'up')} would have been found with 90 % "
        f"probability{enough}"
    )


def _down(bound: float, digits: int = 3) -> str:
    return number(bound, "down", digits)
