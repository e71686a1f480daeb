"""A design in words and as a table."""

from ldpaudit.commands.mechanism.comparison import Design, Scored, best
from ldpaudit.commands.mechanism.tables import exact, show
from ldpaudit.terminal import say

UNITS = {"squared": "½(ŷ − y)²", "absolute": "|ŷ − y|", "poisson": "ŷ − y log ŷ"}


def print_design(found: Design) -> None:
    """Print a design as a table, the best first, and say which to take."""
    problem = found.problem
    show(
        f"Expected {problem.loss} loss {UNITS[problem.loss]} at ε = {exact(problem.epsilon)} nats",
        ("mechanism", "ε", "loss", "max |bias|", "outputs", "seconds"),
        [design_row(scored) for scored in found.candidates],
    )
    say("")
    for line in sentences(found):
        say(line)


def design_row(scored: Scored) -> tuple[str, ...]:
    """Return a candidate as a row of texts."""
    errors = scored.errors
    bias = "–" if errors is None else "unbiased" if errors.unbiased else exact(errors.largest_bias)
    return (
        scored.title,
        "–" if scored.epsilon is None else exact(scored.epsilon),
        "–" if scored.loss is None else exact(scored.loss),
        bias,
        "–" if scored.outputs is None else exact(scored.outputs),
        f"{scored.seconds:.3f}",
    )


def sentences(found: Design) -> list[str]:
    """Return which mechanism is the best, the best unbiased one, what ε is spent, and why not."""
    over, fair = best(found.candidates), best(found.candidates, unbiased=True)
    lines = [
        _praise("Best overall", over, found) if over else "No mechanism has a finite loss.",
        _praise("Best unbiased", fair, found) if fair else "No unbiased one has a finite loss.",
    ]
    if found.prior_epsilon:
        lines.append(
            f"Total ε = {exact(found.total_epsilon)} nats: {exact(found.prior_epsilon)} for the "
            f"private prior and {exact(found.problem.epsilon)} for the labels."
        )
        lines.append(
            "The losses are expected under that estimate, not under the true prior; every run "
            "draws a new estimate and spends its ε again."
        )
    return lines + _reasons(found)


def _reasons(found: Design) -> list[str]:
    """Return each reason for the lack of a finite loss once, after those that it holds for."""
    titles: dict[str, list[str]] = {}
    for scored in found.candidates:
        if scored.reason:
            titles.setdefault(scored.reason, []).append(scored.title)
    return [f"{', '.join(names)}: {reason}" for reason, names in titles.items()]


def _praise(what: str, scored: Scored, found: Design) -> str:
    assert scored.loss is not None
    also = ""
    if found.problem.loss == "squared":
        also = f" (mean squared error {exact(2 * scored.loss)})"
    proof = f"; optimal among {scored.optimal_among}" if scored.optimal_among else ""
    return f"{what}: {scored.title}, expected loss {exact(scored.loss)}{also}{proof}."
