"""Faults of noise on numbers: whole numbers from 0 to 20, discrete Laplace noise of ε = 1."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ldpaudit.extras.selftest.planting import people
from zoo.specimen import CLAIM, Fault, Specimen, Trace, declared

HIGH = 20
MECHANISM = {"name": "discrete-laplace", "low": 0, "high": HIGH, "step": 1, "epsilon": CLAIM}
WRONG = Trace(("fail:claimed-channel",))
LATTICE = Trace(("warning:mechanism: The (noise lies on a lattice|digits of a released).*",))
READ_OFF = Trace(("warning:mechanism: The (true numbers of some|finer digits of the released).*",))
Noise = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def geometric(n: int, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Draw discrete Laplace noise: the difference of two geometric numbers."""
    chance = -math.expm1(-1 / scale)
    return rng.geometric(chance, n) - rng.geometric(chance, n)


def _numbers(
    noise: Noise, *, fine: bool = False, **settings: Any
) -> Callable[[int, np.random.Generator], Specimen]:
    def make(n: int, rng: np.random.Generator) -> Specimen:
        persons = people(n, 2, rng)
        signal = persons.frame["x0"].to_numpy() - persons.frame["x1"].to_numpy()
        labels = np.clip(6 + 4 * signal, 0, HIGH)
        labels = labels if fine else np.rint(labels).astype(np.int64)
        numbers = noise(labels, rng)
        whole = settings.get("name") != "laplace"
        frame = persons.frame.assign(label=numbers.astype(np.int64) if whole else numbers)
        mechanism = {k: v for k, v in (MECHANISM | settings).items() if whole or k != "step"}
        return declared(frame, labels, mechanism)

    return make


def _forgotten(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return labels + geometric(len(labels), 1 / CLAIM, rng)


def _truncated(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return labels + np.trunc(rng.laplace(0, HIGH / CLAIM, len(labels)))


def _zeros(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(labels == 0, 0, _honest(labels, rng))


def _honest(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return labels + geometric(len(labels), HIGH / CLAIM, rng)


def _redrawn(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    out = _honest(labels, rng)
    while (beyond := (out < 0) | (out > HIGH)).any():
        out[beyond] = _honest(labels[beyond], rng)
    return out


def _clipped(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.clip(_honest(labels, rng), 0, HIGH)


def _rounded(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return 5 * np.rint(_honest(labels, rng) / 5)


def _even(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return labels + 2 * geometric(len(labels), HIGH / CLAIM / 2, rng)


def _real(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return labels + rng.laplace(0, HIGH / CLAIM, len(labels))


def _few_values(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    uniform = (rng.integers(0, 1024, len(labels)) + 0.5) / 1024 - 0.5
    return labels - HIGH / CLAIM * np.sign(uniform) * np.log(1 - 2 * np.abs(uniform))


def _kept(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.permutation(len(labels)) < 20, labels, _real(labels, rng))


def _in_cents(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(len(labels)) < 0.01, labels.round(), _real(labels, rng).round(2))


def _noise_clipped(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    noise = rng.laplace(0, HIGH / CLAIM, len(labels))
    most = np.quantile(np.abs(noise), 0.95)
    return labels + np.clip(noise, -most, most)


def _in_digits(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.rint(_real(labels, rng)) + np.floor(labels * 100) / 1e4


def redrawn_epsilon() -> float:
    """Return ε of noise that is drawn again until the number lies in the range."""
    values = np.arange(HIGH + 1)
    weights = np.exp(-CLAIM / HIGH * np.abs(values[:, None] - values))
    logs = np.log(weights / weights.sum(axis=1, keepdims=True))
    return float((logs.max(axis=0) - logs.min(axis=0)).max())


NUMBERS = (
    Fault(
        "sensitivity-forgotten",
        "The noise is that of labels from 0 to 1, and the labels go up to 20.",
        _numbers(_forgotten),
        HIGH * CLAIM,
        WRONG,
        WRONG,
    ),
    Fault(
        "zeros-kept",
        "Labels that are 0 stay 0.",
        _numbers(_zeros),
        math.inf,
        WRONG,
        WRONG,
    ),
    Fault(
        "noise-truncated",
        "Real noise is cut to whole numbers towards 0, so no noise is twice as frequent.",
        _numbers(_truncated),
        CLAIM + math.log(2),
        WRONG,
        WRONG,
    ),
    Fault(
        "parity-kept",
        "Noise is drawn in steps of 2, so even numbers stay even.",
        _numbers(_even),
        math.inf,
        LATTICE,
        Trace((), "even and odd numbers look alike"),
    ),
    Fault(
        "few-noise-values",
        "Laplace noise is made of 1,024 random numbers, so digits tell which.",
        _numbers(_few_values, name="laplace"),
        math.inf,
        LATTICE,
        Trace(("warning:mechanism: .* to the last digit.*",)),
    ),
    Fault(
        "numbers-in-the-clear",
        "Twenty numbers are released as they are, all others with continuous noise.",
        _numbers(_kept, fine=True, name="laplace"),
        math.inf,
        READ_OFF,
        Trace((), "a number that was left as it is looks like any other"),
    ),
    Fault(
        "rounded-in-the-clear",
        "One number in a hundred is released rounded, without noise, among noisy cents.",
        _numbers(_in_cents, fine=True, name="laplace"),
        math.inf,
        READ_OFF,
        Trace((), "a round number may be a noisy one"),
    ),
    Fault(
        "noise-clipped",
        "The noise itself is clipped, so that its largest value stands in one row of twenty.",
        _numbers(_noise_clipped, name="laplace"),
        math.inf,
        LATTICE,
        Trace(("warning:mechanism: .* to the last digit.*",)),
    ),
    Fault(
        "number-in-digits",
        "The noise is rounded, and the number itself is written behind the decimal point.",
        _numbers(_in_digits, fine=True, name="laplace"),
        math.inf,
        READ_OFF,
        Trace((), "digits look like digits"),
    ),
    Fault(
        "redrawn-in-range",
        "Noise is drawn again until the number lies in the range, declared as clipped.",
        _numbers(_redrawn, clipped=True),
        redrawn_epsilon(),
        WRONG,
        WRONG,
    ),
)
HARMLESS_NUMBERS = (
    Fault("numbers", "Discrete Laplace noise as declared.", _numbers(_honest), CLAIM, honest=True),
    Fault(
        "real-numbers",
        "Laplace noise as declared.",
        _numbers(_real, name="laplace"),
        CLAIM,
        honest=True,
    ),
    Fault(
        "clipped-after",
        "Noisy numbers are clipped to the range afterwards, undeclared: harmless.",
        _numbers(_clipped),
        CLAIM,
        honest=True,
    ),
    Fault(
        "rounded-after",
        "Noisy numbers are rounded to multiples of 5 afterwards: harmless.",
        _numbers(_rounded),
        CLAIM,
        honest=True,
    ),
)
