"""The mechanisms of planted releases, and what each declares."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from ldpaudit.commands.selftest.people import classes
from ldpaudit.mechanisms import Mechanism, from_declaration
from ldpaudit.release import Declaration

RADIUS: Final = 4.0
"""That no feature vector exceeds where features are released with noise."""
_Stated = Callable[[int, float], dict[str, Any]]


def _named(k: int, epsilon: float) -> dict[str, Any]:
    return {"classes": list(classes(k)), "epsilon": epsilon}


def _noisy_features(k: int, epsilon: float) -> dict[str, Any]:
    noise = {"radius": RADIUS, "sigma": 20.0, "feature_epsilon": 2.0, "feature_delta": 1e-3}
    return _named(k, epsilon) | noise


def _kept(k: int, epsilon: float) -> dict[str, Any]:
    return _named(k, epsilon) | {"kept": list(classes(k)[: max(2, k - 1)])}


def _matrix(k: int, epsilon: float) -> dict[str, Any]:
    """A channel with one output more than there are classes, the same in every release."""
    gaps = np.random.default_rng(k).uniform(0, epsilon, (k, k + 1))
    gaps[:, 0], gaps[0, 0] = 0.0, epsilon
    rows = np.exp(gaps) / np.exp(gaps).sum(axis=1, keepdims=True)
    return {
        "classes": list(classes(k)),
        "outputs": [f"z{place}" for place in range(k + 1)],
        "matrix": rows.tolist(),
    }


def _numbers(k: int, epsilon: float) -> dict[str, Any]:
    return {"classes": list(range(k)), "epsilon": epsilon}


def _bins(k: int, epsilon: float) -> dict[str, Any]:
    middle = k // 2
    outputs = {"starts": [0, middle], "outputs": [middle / 2, (middle + k) / 2]}
    return _numbers(k, epsilon) | outputs


def _range(k: int, epsilon: float) -> dict[str, Any]:
    return {"low": 0, "high": k - 1, "step": 1, "epsilon": epsilon}


def _clipped(k: int, epsilon: float) -> dict[str, Any]:
    return _range(k, epsilon) | {"clipped": True}


def _real(k: int, epsilon: float) -> dict[str, Any]:
    return {"low": 0, "high": k - 1, "epsilon": epsilon}


OF_CLASSES: Final[Mapping[str, _Stated]] = {
    "randomized-response": _named,
    "rr-top-k": _kept,
    "channel": _matrix,
    "double-rr": _named,
    "gaussian-rr": _noisy_features,
}
OF_NUMBERS: Final[Mapping[str, _Stated]] = {
    "rr-on-bins": _bins,
    "debiased-rr": _numbers,
    "discrete-laplace": _clipped,
    "laplace": _real,
    "discrete-staircase": _range,
    "exponential": _range,
}


def declared(name: str, k: int, epsilon: float) -> Declaration:
    """Return what a release of k labels declares."""
    return Declaration(name, {**OF_CLASSES, **OF_NUMBERS}[name](k, epsilon))


def mechanism(name: str, k: int, epsilon: float) -> Mechanism:
    """Return the mechanism that does what is declared."""
    return from_declaration(declared(name, k, epsilon), ())
