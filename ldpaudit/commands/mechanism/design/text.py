"""A design in words and as a table."""

from ldpaudit.commands.mechanism.design.result import Design, Scored
from ldpaudit.reports.text.numbers import number
from ldpaudit.terminal import say, show

_DECIMALS = 9
"""Beyond which the numbers of a linear program are noise."""
UNITS = {"squared": "½(ŷ − y)²", "absolute": "|ŷ − y|", "poisson": "ŷ − y log ŷ"}


def print_design(design: Design, *, quiet: bool) -> None:  # noqa: ARG001
    """Print a design as a table, the best first, and say which mechanism to take."""
    problem = design.problem
    show(
        f"Expected {problem.loss} loss {UNITS[problem.loss]} at ε = {number(problem.epsilon)} nats",
        ("mechanism", "ε", "loss", "max |bias|", "outputs", "seconds"),
        [design_row(scored) for scored in design.candidates],
    )
    say("")
    for line in sentences(design):
        say(line)


def design_row(scored: Scored) -> tuple[str, ...]:
    """Return a candidate as a row of texts."""
    errors = scored.errors
    bias = "–" if errors is None else "unbiased" if errors.unbiased else number(errors.largest_bias)
    epsilon, loss, outputs = (
        "–" if value is None else number(round(value, _DECIMALS))
        for value in (scored.epsilon, scored.loss, scored.outputs)
    )
    return scored.title, epsilon, loss, bias, outputs, f"{scored.seconds:.3f}"


def sentences(design: Design) -> list[str]:
    """Return the best mechanism, the best unbiased one, the ε spent, and why some have no loss."""
    overall, unbiased = design.best, design.best_unbiased
    lines = [
        _praise("Best overall", overall, design) if overall else "No mechanism has a finite loss.",
        _praise("Best unbiased", unbiased, design)
        if unbiased
        else "No unbiased one has a finite loss.",
    ]
    if design.prior_epsilon:
        lines.append(
            f"Total ε = {number(design.total_epsilon)} nats: {number(design.prior_epsilon)} for "
            f"the private prior and {number(design.problem.epsilon)} for the labels."
        )
        lines.append(
            "The losses are expected under that estimate, not under the true prior; every run "
            "draws a new estimate and spends its ε again."
        )
    return lines + _reasons(design)


def _reasons(design: Design) -> list[str]:
    """Return each reason for the lack of a finite loss once, after those that it holds for."""
    titles: dict[str, list[str]] = {}
    for scored in design.candidates:
        if scored.reason:
            titles.setdefault(scored.reason, []).append(scored.title)
    return [f"{', '.join(names)}: {reason}" for reason, names in titles.items()]


def _praise(what: str, scored: Scored, design: Design) -> str:
    assert scored.loss is not None
    error = f" (mean squared error {number(2 * scored.loss)})"
    also = error if design.problem.loss == "squared" else ""
    proof = f"; optimal among {scored.optimal_among}" if scored.optimal_among else ""
    return f"{what}: {scored.title}, expected loss {number(scored.loss)}{also}{proof}."
