"""Seeds that people write, and the weights of rows whose noise is looked for."""

import datetime
import math

import mpmath
import numpy as np
import pytest

from ldpaudit.estimators.seeds import screening, usual


def test_the_digits_of_famous_numbers_are_tried() -> None:
    tried = set(usual.other_seeds(0).tolist())
    digits = {"e": (6, 7, 8), "pi": (6, 7, 8, 9), "phi": (6, 7)}
    for name, lengths in digits.items():
        text = mpmath.nstr(+getattr(mpmath, name), 15).replace(".", "")
        assert {int(text[:length]) for length in lengths} <= tried
    words = {31337, 8675309, 123123, 424242, 54321, 0xDEADBEEF, 0xC0FFEE, 1234567890, 20000, 50000}
    assert words <= tried
    assert {10**power for power in range(10)} <= tried
    assert {2**power for power in range(32)} | {2**power - 1 for power in range(1, 33)} <= tried


def test_dates_and_the_seconds_of_a_day_are_tried() -> None:
    tried = set(usual.other_seeds(0).tolist())
    assert {19900101, 20301231, 20000229} <= tried
    assert not {19891231, 20310101, 20010229} & tried
    day = datetime.date(2024, 5, 6)
    more = set(usual.other_seeds(0, day).tolist()) - tried
    midnight = int(datetime.datetime(2024, 5, 6, tzinfo=datetime.UTC).timestamp())
    # From UTC+12 to UTC−14.
    assert (min(more), max(more)) == (midnight - 12 * 3_600, midnight + 38 * 3_600 - 1)
    assert (usual.other_seeds(1 << 15) >= 1 << 15).all()


def test_weights_have_variance_one_for_a_wrong_seed() -> None:
    class Rows:
        centred = np.array([0.5, -0.2, 0.0, 0.9])

    weights = screening._weights(Rows())
    assert weights / Rows.centred[0] * 0.5 == pytest.approx(weights)
    assert (weights**2).sum() / 12 == pytest.approx(1)  # 1/12: of a uniform number.
    Rows.centred = np.zeros(3)
    assert screening._weights(Rows()).tolist() == [0, 0, 0]


def test_the_ends_of_the_interval_have_variance_one() -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(1, 6))
    weights /= math.sqrt((weights**2).sum() / 12)
    numbers = rng.random((6, 5))
    scale = math.sqrt(1 / 12 / (1 / 17 - 1 / 81))
    ends = [np.abs(weights @ part).max(axis=0) * scale for part in (numbers**8, (1 - numbers) ** 8)]
    assert screening._of_ends(weights, numbers) == pytest.approx(np.maximum(*ends))
