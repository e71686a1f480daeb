"""Averages over draws, verdicts of settings and the least noise: validity and power."""

from typing import Any

import numpy as np
import pytest

from ldpaudit.commands.sweep.request import parse_grid
from ldpaudit.commands.sweep.result import Mean, Setting, least_noise, setting_of

GRID = parse_grid("lambda", "0.1:0.5:5")


def draw(
    verdict: str, accuracy: float = 0.8, sentence: str = "", decision: str = "publish"
) -> dict[str, Any]:
    estimate = {"id": "attack.best.accuracy", "kind": "certified", "unit": "proportion"}
    estimate |= {"value": accuracy, "low": accuracy - 0.1, "high": accuracy + 0.1, "level": 0.95}
    test = estimate | {"id": "test_accuracy"}
    return {
        "verdict": verdict,
        "decision": decision if verdict == "pass" else "not yet",
        "sentence": sentence or verdict,
        "epsilon": 1.0,
        "lambda": 0.3,
        "correction": "forward",
        "test": test,
        "result": {"estimates": [estimate]},
    }


def setting(
    value: float, *verdicts: str, failed: tuple[str, ...] = (), decision: str = "publish"
) -> Setting:
    contents = [draw(v, decision=decision) for v in verdicts]
    return setting_of("randomized-response", "lambda", value, contents, failed, 0.95)


def test_a_setting_is_as_good_as_its_worst_draw() -> None:
    assert setting(0.1, "pass", "pass").verdict == "pass"
    assert setting(0.1, "pass", "inconclusive").verdict == "inconclusive"
    assert setting(0.1, "pass", "inconclusive", "fail").verdict == "fail"
    assert setting(0.1, "pass", failed=("It ended.",)).verdict == "failed"
    assert setting(0.1, "pass", failed=("It ended.",)).sentence == "It ended."


def test_averages_hold_at_the_union_bound() -> None:
    made = Mean.of([draw("pass", a)["test"] for a in (0.7, 0.8)])
    assert made.value == pytest.approx(0.75)
    assert (made.low, made.high) == (pytest.approx(0.65), pytest.approx(0.85))
    assert made.level == pytest.approx(0.9)
    many = Mean.of([draw("pass")["test"]] * 11)
    assert (many.low, many.high, many.level) == (None, None, None)
    infinite = Mean.of([draw("pass")["test"] | {"value": "inf", "low": None, "high": None}])
    assert infinite.value == float("inf")


def test_the_least_noise_and_its_neighbours() -> None:
    verdicts = ("fail", "inconclusive", "pass", "fail", "pass")
    settings = [setting(v, *[w] * 3) for v, w in zip(GRID.values, verdicts, strict=True)]
    found = least_noise("randomized-response", settings, 0.95)
    assert found.value == settings[2].value
    assert (found.less_noise.value, found.more_noise.value) == (0.2, 0.4)
    # Not monotone, and said so.
    assert found.more_noise_that_does_not_pass == [0.4]
    assert "more noise does not always pass: λ = 0.4" in found.sentence
    # Clopper–Pearson of 3 of 3 at 99 % = 95 % over five settings: (0.01/2)^(1/3).
    assert found.pass_share.low == pytest.approx(0.005 ** (1 / 3))


def test_no_setting_passes_and_the_first_does() -> None:
    none = least_noise("rr", [setting(0.1, "fail", "fail"), setting(0.2, "pass", "fail")], 0.95)
    assert none.value is None
    assert "λ = 0.2" in none.sentence
    assert "1 of 2" in none.sentence
    first = least_noise("rr", [setting(0.1, "pass"), setting(0.2, "pass")], 0.95)
    assert "less may do" in first.sentence
    # A setting that could not be measured has not passed.
    lost = least_noise("rr", [setting(0.1, failed=("gone",)), setting(0.2, "pass")], 0.95)
    assert lost.value == 0.2
    assert lost.less_noise.verdict == "failed"


def test_a_setting_that_may_not_be_published_is_no_answer() -> None:
    held, clear = setting(0.1, "pass", decision="not yet"), setting(0.2, "pass")
    found = least_noise("rr", [held, clear, held], 0.95)
    assert (found.value, found.more_noise_that_does_not_pass) == (0.2, [0.1])
    assert ": pass, 1 of 1 draws passed (publish: not yet)" in found.sentence
    none = least_noise("rr", [held], 0.95)
    assert none.value is None
    assert "no setting of the grid passed and may be published in every draw" in none.sentence


def test_the_share_that_passes_is_covered_although_the_setting_was_chosen() -> None:
    """At the chosen setting the lower bound lies above the truth in at most 5 % of sweeps."""
    rng, wrong, answered = np.random.default_rng(9), 0, 0
    truth = dict(zip(GRID.values, (0.55, 0.65, 0.75, 0.85, 0.95), strict=True))
    for _ in range(600):
        settings = [
            setting(v, *np.where(rng.random(6) < p, "pass", "fail")) for v, p in truth.items()
        ]
        found = least_noise("rr", settings, 0.95)
        if found.value is None:
            continue
        answered += 1
        wrong += found.pass_share.low > truth[found.value]
        # Power: all of 6 draws passed, so the bound is (0.005)^(1/6) = 0.41 and not 0.
        assert found.pass_share.low > 0.4
    assert answered > 400
    # More than 48 of 600 at 5 %: probability below 1e-3 of a false alarm, with a fixed seed.
    assert wrong <= 48
