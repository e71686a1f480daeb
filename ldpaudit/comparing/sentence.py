"""The comparison in one sentence: what the strongest attack loses, and what the model costs.

A change is named only where its interval leaves its sign in no doubt; where it does not, the
interval of the test accuracy says how much may be hidden in it.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from ldpaudit.comparison import Difference
from ldpaudit.reports.numbers import number
from ldpaudit.result import AuditResult

_BEST: Final = "attack.best.accuracy"
_NUMBERS: Final = "numeric.best.mse"
_NAMES: Final = {
    "randomized-response": "randomized response",
    "double-rr": "double randomized response",
    "dummy-features-rr": "randomized response with dummy features",
    "model-based-rr": "model-based randomized response",
    "rr-top-k": "RR-Top-k",
    "rr-on-bins": "RR-on-Bins",
    "optimal-unbiased": "the optimal unbiased randomizer",
    "debiased-rr": "debiased randomized response",
    "laplace": "Laplace noise",
    "discrete-laplace": "discrete Laplace noise",
    "staircase": "staircase noise",
    "discrete-staircase": "discrete staircase noise",
    "exponential": "the exponential mechanism",
    "gaussian-rr": "randomized response with Gaussian features",
    "channel": "the declared channel",
}


def sentence(releases: Sequence[AuditResult], differences: Sequence[Difference]) -> str:
    """Return what the comparison comes to, in one sentence.

    Parameters
    ----------
    releases : sequence of AuditResult
        In the order of their letters.
    differences : sequence of Difference
    """
    others = [chr(ord("B") + i) for i in range(len(releases) - 1)]
    first, named = releases[0], _titles(releases)
    clauses = []
    for letter, other, title in zip(others, releases[1:], named[1:], strict=True):
        own = {d.id: d for d in differences if d.b == letter}
        clauses.append(f"{title} {_clause(first, other, own)}")
    text = f"{_setting(releases)}{'; '.join(clauses)}, against {named[0]}."
    return text[:1].upper() + text[1:]


def _setting(releases: Sequence[AuditResult]) -> str:
    """Return the parameter that all share, where they share one."""
    noises = {_noise(result) for result in releases}
    if len(noises) != 1:
        return ""
    noise = noises.pop()
    return "" if noise is None else f"at λ = {noise:.3g} "


def _noise(result: AuditResult) -> float | None:
    noise = result.mechanism.parameters.get("lambda")
    return float(noise) if isinstance(noise, int | float) else None


def _titles(releases: Sequence[AuditResult]) -> list[str]:
    """Return what each release is called: its mechanism, with more where that is not enough."""
    names = [_NAMES.get(r.mechanism.name, "an unknown mechanism") for r in releases]
    if len(set(names)) == len(names):
        shared = len({_noise(r) for r in releases}) == 1
        return names if shared else [_detailed(n, r) for n, r in zip(names, releases, strict=True)]
    detailed = [_detailed(n, r) for n, r in zip(names, releases, strict=True)]
    if len(set(detailed)) == len(detailed):
        return detailed
    return [f"{title} ({chr(ord('A') + i)})" for i, title in enumerate(detailed)]


def _detailed(name: str, result: AuditResult) -> str:
    epsilon = result.mechanism.epsilon
    return name if epsilon is None else f"{name} with ε = {epsilon:.3g}"


def _clause(first: AuditResult, other: AuditResult, own: dict[str, Difference]) -> str:
    attack, test = _attack(first, other, own), _test(first, other, own)
    return f"{attack} and {test}" if test else attack


def _attack(first: AuditResult, other: AuditResult, own: dict[str, Difference]) -> str:
    if first.estimate(_NUMBERS) is not None:
        return _numeric_attack(first, other, own)
    ours, theirs = first.estimate(_BEST), other.estimate(_BEST)
    if ours is None or theirs is None:
        return "was not attacked in the same way"
    shares = _percentages(ours.value, theirs.value)
    found = own.get(_BEST)
    if found is None:
        return f"has its best attack at {shares[1]} (no interval for the change from {shares[0]})"
    if not found.decided:
        return f"leaves the best attack at {shares[1]}, no change shown from {shares[0]}"
    verb = "lowers" if found.high < 0 else "raises"
    claim = "" if found.kind == "certified" else ", by estimate,"
    return f"{verb}{claim} the best attack from {shares[0]} to {shares[1]}"


def _numeric_attack(first: AuditResult, other: AuditResult, own: dict[str, Difference]) -> str:
    """Return the clause for labels that are numbers: how far the best guess is off."""
    ours, theirs, found = first.estimate(_NUMBERS), other.estimate(_NUMBERS), own.get(_NUMBERS)
    if ours is None or theirs is None or found is None:
        return "was not attacked in the same way"
    if not found.decided:
        return "shows no change of the best attack's squared error"
    verb = "raises" if found.low > 0 else "lowers"
    return f"{verb} the best attack's squared error from {ours.value:.4g} to {theirs.value:.4g}"


def _test(first: AuditResult, other: AuditResult, own: dict[str, Difference]) -> str:
    found = own.get("test_accuracy")
    if found is not None:
        if not found.decided:
            ends = [_signed_points(end) for end in (found.low, found.high)]
            return f"shows no change of test accuracy ({ends[0]} to {ends[1]} points)"
        points = _points(abs(found.value))
        verb = "costs" if found.high < 0 else "gains"
        return f"{verb} {points} of test accuracy"
    error = own.get("test_squared_error")
    if error is None:
        return ""
    if not error.decided:
        return "shows no change of the squared error on test rows"
    verb = "raises" if error.low > 0 else "lowers"
    scores = [r.estimate("test_squared_error") for r in (first, other)]
    values = " to ".join(f"{e.value:.4g}" for e in scores if e is not None)
    return f"{verb} the squared error on test rows from {values}"


def _percentages(a: float, b: float) -> tuple[str, str]:
    """Return two shares in percent, with as many digits as tell them apart, at most four."""
    for digits in (1, 2, 3, 4) if a != b else (1,):
        texts = [f"{_rounded(100 * value, digits)} %" for value in (a, b)]
        if texts[0] != texts[1]:
            break
    return texts[0], texts[1]


def _points(difference: float) -> str:
    for digits in (1, 2, 3, 4):
        text = _rounded(100 * difference, digits)
        if float(text) > 0:
            break
    return f"{text} points"


def _signed_points(end: float) -> str:
    """Return an end of an interval in points, rounded away from zero."""
    return number(100 * end, "down" if end < 0 else "up", 1)


def _rounded(value: float, digits: int) -> str:
    step = Decimal(1).scaleb(-digits)
    return f"{Decimal(repr(value)).quantize(step, rounding=ROUND_HALF_EVEN):f}"
