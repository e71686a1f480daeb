"""What Figure 3 prints and draws."""

from dataclasses import dataclass

from picture import Line, Panel


@dataclass(frozen=True)
class Point:
    """Accuracies at one λ; label inference on the released rows, ``*_test`` on the test images."""

    noise: float
    rr_in_sample: float
    rr_cross: float
    rr_test: float
    first_in_sample: float
    first_test: float
    double_in_sample: float
    double_cross: float
    double_test: float
    label_alone: float
    with_label: float
    knows_generator: float
    knows_linearly: float
    knows_table: float
    seconds: float


def print_accuracies(points: list[Point]) -> None:
    """Print what models of the released rows reach: label inference and test accuracy."""
    print("\nModels of the released rows, attacking by the features alone (h(x̃) against y):\n")
    heads = ("λ", "flip", "RR attack", "cross", "RR test", "double attack", "cross", "double test")
    heads += ("first term attack", "first term test", "1 − λ/2")
    print(f"| {' | '.join(heads)} |\n|{'---:|' * len(heads)}")
    for p in points:
        cells = (p.rr_in_sample, p.rr_cross, p.rr_test, p.double_in_sample, p.double_cross)
        cells += (p.double_test, p.first_in_sample, p.first_test, 1 - p.noise / 2)
        print(f"| {p.noise:.3f} | {p.noise / 2:.3f} | " + _percent(cells))


def print_attackers(points: list[Point]) -> None:
    """Print what attackers reach who know more than the features."""
    print("\nDouble RR: attackers who look at the released label as well (cross-fitted):\n")
    heads = ("λ", "released label alone", "+ features", "+ generator, network")
    heads += ("+ generator, linear", "+ table", "1 − λ²/2")
    print(f"| {' | '.join(heads)} |")
    print("|" + "---:|" * 7)
    for p in points:
        cells = (p.label_alone, p.with_label, p.knows_generator, p.knows_linearly, p.knows_table)
        print(f"| {p.noise:.3f} | " + _percent((*cells, 1 - p.noise**2 / 2)))


def _percent(cells: tuple[float, ...]) -> str:
    return " | ".join(f"{100 * cell:.2f} %" for cell in cells) + " |"


def print_claims(points: list[Point]) -> None:
    """Print each published claim beside what was measured, under both readings of λ.

    Judged by the published learner, which drops the loss's second term; the full one in brackets.
    """
    print("\n| published | reading of λ | measured (second term kept) | holds |\n|---|---|---|---|")
    for reading, scale in (("replacement", 1.0), ("flip", 2.0)):
        meant = [p for p in points if p.noise <= 0.4 * scale + 1e-9]
        strong = [p for p in meant if p.noise >= scale / 3 - 1e-9]
        last = [p for p in meant if abs(p.noise - 0.4 * scale) < 1e-9]
        if not strong:
            continue
        least = min(p.rr_in_sample for p in meant)
        _row("RR attack high for all λ ≤ 0.4 (> 95 %)", reading, [least], least > 0.95)
        if last:
            found = [last[0].first_in_sample, last[0].double_in_sample]
            _row("double RR attack below 65 % at λ = 0.4", reading, found, found[0] < 0.65)
        found = [min(p.first_test for p in strong), min(p.double_test for p in strong)]
        _row("double RR test accuracy > 95 % for λ ≥ 1/3", reading, found, found[0] > 0.95)


def _row(claim: str, reading: str, found: list[float], holds: bool) -> None:
    words = f"{100 * found[0]:.2f} %" + "".join(f" ({100 * value:.2f} %)" for value in found[1:])
    print(f"| {claim} | {reading} | {words} | {_yes(holds)} |")


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def panels(points: list[Point]) -> list[Panel]:
    """Return the published figure's two panels."""
    noise = [p.noise for p in points]

    def line(name: str, field: str) -> Line:
        return Line(name, noise, [100 * getattr(p, field) for p in points])

    attacks = [
        line("RR", "rr_in_sample"),
        line("double RR, as published", "first_in_sample"),
        line("double RR, second term kept", "double_in_sample"),
        line("double RR, released label alone", "label_alone"),
        line("double RR, knows the generator", "knows_linearly"),
        line("double RR, holds the synthetic table", "knows_table"),
    ]
    tests = [
        line("RR", "rr_test"),
        line("double RR, as published", "first_test"),
        line("double RR, second term kept", "double_test"),
    ]
    x, y = "λ (chance of a replacement)", "accuracy in %"
    return [
        Panel("Label inference on released rows", x, y, attacks, (50, 100)),
        Panel("Test images", x, y, tests, (50, 100)),
    ]
