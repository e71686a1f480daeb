"""The generators are the libraries' own, right sources are found, wrong ones within their level."""

import datetime
import math
import random

import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.arrays import BoolArray, FloatArray, IndexArray
from ldpaudit.estimators.seeds import (
    Outcomes,
    checksums,
    generators,
    seeding,
    try_all,
    written_seeds,
)

KEEP = math.e / (1 + math.e)
LABELS = np.random.default_rng(0).integers(0, 2, 1500)


def changed(numbers: FloatArray, labels: IndexArray, form: str) -> BoolArray:
    """Return which of two labels are changed, by programs that read numbers in different ways."""
    if form == "keep":
        return numbers >= KEEP
    if form == "lambda":
        new = np.random.default_rng(5).integers(0, 2, len(labels))
        return (numbers < 2 * (1 - KEEP)) & (new != labels)
    return (numbers < np.where(labels == 1, KEEP, 1 - KEEP)) != (labels == 1)


def test_numbers_of_python_are_its_own() -> None:
    for seed in (0, 42, 2**31, 2**32 - 1):
        source = random.Random(seed)
        expected = [source.random() for _ in range(700)]
        assert generators()["Python's random.seed"](seed, 700).tolist() == expected


@pytest.mark.parametrize(
    ("seed", "uniform", "sample"),
    [
        (1, (0.2655087, 0.3721239, 0.5728534), (68, 39, 1, 34)),
        (42, (0.9148060, 0.9370754, 0.2861395), (49, 65, 25, 74)),
        (123, (0.2875775, 0.7883051, 0.4089769), (31, 79, 51, 14)),
    ],
)
def test_numbers_of_r_are_the_published_ones(
    seed: int, uniform: tuple[float, ...], sample: tuple[int, ...]
) -> None:
    """``set.seed(n); runif(3)`` and ``set.seed(n); sample(1:100, 4)``."""
    drawn = generators()["R's set.seed"](seed, 3)
    assert np.allclose(drawn, uniform, rtol=0, atol=6e-8)
    drawn = generators()["R's set.seed and sample(100)"](seed, 4)
    assert (np.rint(drawn * 100) + 1).tolist() == list(sample)


@pytest.mark.parametrize(
    ("name", "form"),
    [(name, "keep") for name in generators()]
    + [(next(iter(generators())), form) for form in ("lambda", "inverse")],
)
def test_a_right_seed_is_found(name: str, form: str) -> None:
    flips = changed(generators()[name](611, 1500), LABELS, form)
    outcomes = [Outcomes(flips, LABELS), Outcomes((LABELS == 1) != flips, LABELS)]
    evidence = try_all(outcomes, 700)
    assert evidence.source == f"{name} with a common seed"
    assert evidence.log_p_value < math.log(1e-12)


@pytest.mark.parametrize("name", generators())
def test_remembered_numbers_find_the_same(name: str) -> None:
    flips = changed(generators()[name](611, 1500), LABELS, "keep")
    honest = np.random.default_rng([1, 2]).random(1500) >= KEEP
    remembered: dict[object, object] = {}
    for hits in (honest, flips, flips):
        outcomes = [Outcomes(hits, LABELS)]
        assert try_all(outcomes, 700, (20240517,), remembered=remembered) == try_all(
            outcomes, 700, (20240517,)
        )


def test_a_seed_for_each_row_is_found_at_the_end_of_those_tried() -> None:
    numbers = [np.random.default_rng(300 + row).random() for row in range(1500)]
    outcomes = [Outcomes(changed(np.array(numbers), LABELS, "keep"), LABELS)]
    evidence = try_all(outcomes, 700)
    assert evidence.source.endswith("with a seed for each row that counts up")
    assert evidence.log_p_value < math.log(1e-12)


@pytest.mark.parametrize("epsilon", [0.2, 2.0, 3.5])
def test_it_is_found_at_any_noise(epsilon: float) -> None:
    labels = np.random.default_rng(0).integers(0, 2, 8_000)
    flips = np.random.default_rng(42).random(8_000) >= 1 / (1 + math.exp(-epsilon))
    evidence = try_all([Outcomes(flips, labels)], 700)
    assert evidence.source == "numpy.random.default_rng with a common seed"
    assert evidence.log_p_value < math.log(1e-12)


@pytest.mark.parametrize("source", ["CRC32 of column {} modulo 100", "SHA-256 of column {}"])
def test_a_checksum_of_a_column_is_found(source: str) -> None:
    # Each customer is in two rows; another column has values of its own.
    customer, other = np.arange(1500) // 2, np.arange(1500) + 10_000
    numbers = dict(checksums([str(value) for value in customer]))[source]
    outcomes = [Outcomes(changed(numbers, LABELS, "keep"), LABELS)]
    evidence = try_all(outcomes, 10, columns={"other": other, "customer": customer})
    assert (evidence.source, evidence.column, evidence.columns) == (source, "customer", 2)
    assert evidence.log_p_value < math.log(1e-12)
    few = try_all(outcomes, 10, columns={"site": customer % 100})
    assert (few.columns, few.p_value) == (0, 1.0)


@pytest.mark.parametrize(
    "source",
    [
        "numpy.random.default_rng seeded in each row with column {}",
        "Python's random.seed seeded in each row with column {}",
        "Python's random.seed seeded in each row with the text of column {}",
    ],
)
def test_a_column_that_seeds_the_noise_of_each_row_is_found(source: str) -> None:
    ids = np.random.default_rng(3).integers(0, 2**32, 1500)
    texts = [f"P{value}" if "text" in source else str(value) for value in ids]
    draw = dict(seeding(texts, generators()))[source]
    numbers = np.array([draw(text) for text in texts])
    outcomes = [Outcomes(changed(numbers, LABELS, "keep"), LABELS)]
    evidence = try_all(outcomes, 10, columns={"id": np.array(texts)})
    assert (evidence.source, evidence.column) == (source, "id")
    assert evidence.log_p_value < math.log(1e-12)
    honest = [Outcomes(np.random.default_rng([1, 2]).random(1500) >= KEEP, LABELS)]
    assert try_all(honest, 10, columns={"id": np.array(texts)}).p_value > 0.01


def test_a_seed_in_each_row_is_found_where_few_labels_were_changed() -> None:
    """One in 150: the first rows alone hold few of them."""
    ids = np.random.default_rng(3).integers(0, 2**32, 4000)
    draw = dict(seeding([str(value) for value in ids], generators()))
    numbers = np.array(
        [draw["numpy.random.default_rng seeded in each row with column {}"](str(v)) for v in ids]
    )
    outcomes = [Outcomes(numbers < 1 / 150, np.zeros(4000, dtype=np.int64))]
    # Numbers with gaps are floats.
    found = try_all(outcomes, 10, columns={"id": ids.astype(float)})
    assert (found.column, found.p_value < 1e-12) == ("id", True)


def test_nobody_seeds_with_fractions() -> None:
    assert not dict(seeding(["0.5", "-1.25", "1e-07", "nan"], generators()))
    assert len(dict(seeding(["12", "7"], generators()))) == 4
    assert len(dict(seeding(["12", "x"], generators()))) == 1


def test_seeds_that_people_write_are_tried() -> None:
    tried, day = written_seeds(100), datetime.date(2026, 1, 2)
    assert {20240517, 20000229, 31337, 1234567, 31415926, 2**31 - 1, 0xDEADBEEF} <= set(tried)
    assert min(tried) >= 100
    more = set(written_seeds(100, day)) - set(tried)
    midnight = int(datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC).timestamp())
    # From UTC+12 to UTC−14.
    assert (min(more), max(more)) == (midnight - 12 * 3_600, midnight + 38 * 3_600 - 1)


@pytest.mark.parametrize("rate", [0.02, 0.5])
def test_p_values_of_wrong_numbers_are_valid(rate: float) -> None:
    """For fixed numbers and fresh outcomes, P(p ≤ α) ≤ α, also for numbers that are not uniform."""
    rng = np.random.default_rng(7)
    strata = rng.integers(0, 2, 60)
    fixed = np.stack([rng.random(60), rng.random(60) ** 8, np.repeat([0.0, 1.0], 30)])
    hits = rng.random((300, 60)) < np.where(strata == 1, rate, 1 - rate)
    logs = np.array([Outcomes(row, strata).log_p_values(fixed) for row in hits])
    for alpha in (0.05, 0.5):  # False alarm 1e-6.
        assert ((logs <= math.log(alpha)).sum(axis=0) <= binom.isf(1e-6, 300, alpha)).all()
