"""Mechanisms: what was claimed, and its exact privacy analysis."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.explicit import ExplicitChannel, UnknownMechanism
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.randomized_response import (
    RandomizedResponse,
    epsilon_of_lambda,
    lambda_of_epsilon,
)
from ldpaudit.release import Declaration, Label

__all__ = [
    "AUDITED",
    "Channel",
    "ExplicitChannel",
    "Mechanism",
    "RandomizedResponse",
    "UnknownMechanism",
    "epsilon_of_lambda",
    "from_declaration",
    "lambda_of_epsilon",
]

AUDITED = ("randomized-response", "channel", "unknown")
"""The mechanism names that an audit understands."""

_AGREEMENT = 1e-6


def from_declaration(
    declaration: Declaration | None,
    classes: tuple[Label, ...],
) -> Mechanism:
    """Build the claimed mechanism, with every parameter checked.

    Parameters
    ----------
    declaration : Declaration or None
        None stands for ``unknown``.
    classes : tuple
        The true labels to use where the declaration names none.

    Raises
    ------
    InputError
        If the name is not one that an audit understands, a parameter is missing, unknown or out
        of range, or ``epsilon`` and ``lambda`` disagree by more than 1e-6.
    """
    if declaration is None or declaration.name == "unknown":
        return UnknownMechanism()
    parameters = declaration.parameters
    if declaration.name == "randomized-response":
        _only(parameters, {"classes", "lambda", "epsilon"}, declaration.name)
        named = tuple(parameters.get("classes") or classes)
        return RandomizedResponse(named, _noise(parameters, len(named)))
    if declaration.name == "channel":
        _only(parameters, {"classes", "outputs", "matrix"}, declaration.name)
        if "matrix" not in parameters:
            raise InputError("A declared channel must give its matrix.")
        rows = tuple(parameters.get("classes") or classes)
        return ExplicitChannel(
            Channel(_matrix(parameters["matrix"]), rows, tuple(parameters.get("outputs") or rows))
        )
    raise InputError(
        f"The mechanism {declaration.name!r} is not one that can be audited; "
        f"choose one of {', '.join(AUDITED)}."
    )


def _only(parameters: Mapping[str, Any], known: set[str], name: str) -> None:
    unknown = sorted(set(parameters) - known)
    if unknown:
        raise InputError(
            f"The mechanism {name!r} takes the parameters {', '.join(sorted(known))}; "
            f"got {len(unknown)} unknown one(s)."
        )


def _noise(parameters: Mapping[str, Any], k: int) -> float:
    noise, epsilon = _real(parameters, "lambda"), _real(parameters, "epsilon")
    if noise is None and epsilon is None:
        raise InputError("Randomized response must state 'epsilon' or 'lambda'.")
    if k < 2:
        raise InputError("Randomized response must have at least two classes.")
    if epsilon is None:
        assert noise is not None
        epsilon_of_lambda(noise, k)
        return noise
    implied = lambda_of_epsilon(epsilon, k)
    if noise is not None:
        stated = epsilon_of_lambda(noise, k)
        if not math.isclose(stated, epsilon, rel_tol=_AGREEMENT, abs_tol=_AGREEMENT):
            raise InputError(
                f"'epsilon' and 'lambda' must agree: lambda = {noise:.6g} on {k} labels means "
                f"epsilon = {stated:.6g}, but epsilon = {epsilon:.6g} is stated."
            )
        return noise
    return implied


def _real(parameters: Mapping[str, Any], key: str) -> float | None:
    value = parameters.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise InputError(f"The '{key}' parameter must be a number. Got {type(value).__name__}.")
    return float(value)


def _matrix(value: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("A channel's matrix must be a rectangle of numbers.") from None
