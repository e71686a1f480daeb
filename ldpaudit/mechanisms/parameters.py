"""Parameters of mechanisms: how a declaration states them, and their checks."""

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError, did_you_mean
from ldpaudit.release import FloatArray, Label
from ldpaudit.work.limits import EPSILON, LABEL_VALUES

# How far a prior's sum may lie from 1.
PRIOR_TOLERANCE = 1e-6

_SHOWN_LENGTH = 40

# How far two statements of one parameter may lie apart.
_AGREEMENT = 1e-6

# The default of a parameter that must be declared.
REQUIRED: Final = object()


@dataclass(frozen=True)
class Parameter:
    """A parameter of a declaration.

    Attributes
    ----------
    name : str
        Its name in the declaration.
    check : callable or None
        Returns the declared value in the field's type, or raises an
        :class:`~ldpaudit.errors.InputError`; None where the mechanism itself checks it.
    field : str
        The mechanism's field with the value; empty: of the same name.
    default : object
        The value where none is declared, or a function that computes it from the fields before,
        which it takes as a mapping. Without a default the parameter must be declared.
    """

    name: str
    check: Callable[[Any], Any] | None = None
    field: str = ""
    default: Any = REQUIRED


def fields_of(
    declared: Sequence[Parameter],
    parameters: Mapping[str, Any],
    classes: tuple[Label, ...],
    name: str,
) -> dict[str, Any]:
    """Return the fields of a mechanism called ``name`` from a declaration, all checked.

    ``classes`` are the labels where the declaration states none.
    """
    only_known(parameters, {p.name for p in declared}, name)
    held = parameters.get("classes")
    stated = {**parameters, "classes": held if isinstance(held, np.ndarray) else held or classes}
    fields: dict[str, Any] = {}
    for p in declared:
        if stated.get(p.name) is not None or p.default is REQUIRED:
            value = required(stated, p.name, name)
        elif callable(p.default):
            value = p.default(fields)
        else:
            fields[p.field or p.name] = p.default
            continue
        fields[p.field or p.name] = value if p.check is None else p.check(value)
    return fields


def plain(value: Any) -> Any:
    """Return a parameter's value as JSON has it: tuples and arrays as lists."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [plain(one) for one in value] if isinstance(value, tuple) else value


def check_epsilon(epsilon: float) -> float:
    """Return ``epsilon`` in nats as a float, checked.

    Raises
    ------
    InputError
        If it is no number from 1e-6 to 50: below, labels are noise alone; above, hardly any is
        changed.
    """
    value, (low, high) = check_positive("epsilon", epsilon), EPSILON
    if not low <= value <= high:
        raise InputError(
            f"The 'epsilon' parameter must lie from {low:g} to {high:g} nats: below, labels are "
            f"noise alone; above, hardly any is changed. Got {value:g} instead."
        )
    return value


def check_positive(name: str, value: float) -> float:
    """Return a parameter that must be above 0 and finite, for instance σ."""
    return within(name, value, lambda v: v > 0 and math.isfinite(v), "be above 0 and finite")


def check_finite(name: str, value: float) -> float:
    """Return a parameter that must be a finite number."""
    return within(name, value, math.isfinite, "be finite")


def check_proportion(name: str, value: float) -> float:
    """Return a parameter that must lie in [0, 1], for instance λ."""
    return within(name, value, lambda v: 0 <= v <= 1, "lie in [0, 1]")


def check_whole(name: str, value: Any, low: int, high: float = math.inf) -> int:
    """Return a parameter that must be a whole number from ``low`` to ``high``."""
    number = check_number(name, value)
    if not number.is_integer() or not low <= number <= high:
        upto = "" if math.isinf(high) else f" to {high}"
        raise InputError(
            f"The '{name}' parameter must be a whole number from {low}{upto}. Got {number:g} "
            "instead."
        )
    return int(number)


def within(name: str, value: float, holds: Callable[[float], bool], words: str) -> float:
    """Return a number for which something holds (InputError otherwise)."""
    number = check_number(name, value)
    if not holds(number):
        raise InputError(f"The '{name}' parameter must {words}. Got {number:g} instead.")
    return number


def check_list(name: str, values: Any) -> tuple[Label, ...]:
    """Return a list of labels, or of other texts, numbers or booleans."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise InputError(f"The {name} must be a list. Got {type(values).__name__}.")
    labels = tuple(values.tolist() if isinstance(values, np.ndarray) else values)
    if any(not isinstance(one, str | int | float | np.generic) or one != one for one in labels):
        raise InputError(f"The {name} must be texts, numbers or booleans.")
    return labels


def check_classes(classes: Sequence[Label] | npt.NDArray[Any]) -> tuple[Label, ...]:
    """Return the labels of a mechanism, ``classes``, as a tuple, checked.

    Raises
    ------
    InputError
        If it is no list of at least two distinct texts, numbers or booleans.
    """
    labels = check_list("classes", classes)
    if len(labels) < 2:
        raise InputError(f"A mechanism must have at least two classes. Got {len(labels)} instead.")
    if len(set(labels)) < len(labels):
        raise InputError("The labels of a mechanism must be distinct.")
    return labels


def check_numeric_classes(classes: Sequence[Label] | npt.NDArray[Any]) -> tuple[Label, ...]:
    """Return numeric labels: at least two, finite, strictly increasing."""
    labels = check_classes(classes)
    if any(isinstance(v, bool) or not isinstance(v, int | float) for v in labels):
        raise InputError("The labels of a numeric mechanism must be numbers.")
    values = [check_label_value(float(v)) for v in labels]
    if any(a >= b for a, b in pairwise(values)):
        raise InputError("The labels of a numeric mechanism must be in increasing order.")
    return labels


def check_label_value(value: float) -> float:
    """Return a numeric label, or a bound of a range of labels: of a size to compute with."""
    if not math.isfinite(value):
        raise InputError("The labels of a numeric mechanism must be finite.")
    if abs(value) > LABEL_VALUES[1]:
        raise InputError(
            f"Numeric labels must lie from -{LABEL_VALUES[1]:g} to {LABEL_VALUES[1]:g}; state them "
            "in a larger unit."
        )
    return value


def check_prior(prior: Iterable[float], k: int) -> FloatArray:
    """Return a prior over k labels, scaled to sum to exactly 1 up to rounding."""
    values = np.asarray(prior, dtype=np.float64)
    if values.shape != (k,):
        raise InputError(f"The prior must give one probability to each of the {k} labels.")
    if not np.isfinite(values).all() or (values < 0).any():
        raise InputError("The probabilities of a prior must be finite and not negative.")
    with np.errstate(over="ignore"):
        total = float(values.sum())
    if abs(total - 1) > PRIOR_TOLERANCE:
        raise InputError(f"The prior must sum to 1. It sums to {total:.9g} instead.")
    return values / total


def only_known(parameters: Mapping[str, Any], known: set[str], name: str) -> None:
    """Refuse a declaration with parameters other than the known ones."""
    unknown = sorted(set(parameters) - known)
    if unknown:
        first = unknown[0][:_SHOWN_LENGTH]
        more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
        raise InputError(
            f"The mechanism {name!r} takes the parameters {', '.join(sorted(known))}; {first!r}"
            f"{more} is unknown{did_you_mean(first, known)}"
        )


def real(parameters: Mapping[str, Any], key: str) -> float | None:
    """Return a declared number; None where it is not declared."""
    value = parameters.get(key)
    return None if value is None else check_number(key, value)


def required(parameters: Mapping[str, Any], key: str, name: str) -> Any:
    """Return a parameter that must be declared."""
    if parameters.get(key) is None:
        raise InputError(f"The mechanism {name!r} must state '{key}'.")
    return parameters[key]


def check_number(name: str, value: Any) -> float:
    """Return a parameter that must be a number, ∞ included."""
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        raise InputError(f"The '{name}' parameter is too large for a number.")
    real_number = isinstance(value, int | float | np.integer | np.floating)
    if isinstance(value, bool) or not real_number or math.isnan(value):
        # NaN is a float by its type, and "Got float" would not say what is wrong.
        got = "NaN" if real_number and math.isnan(value) else type(value).__name__
        raise InputError(f"The '{name}' parameter must be a number. Got {got} instead.")
    return float(value)


def either_epsilon(
    parameters: Mapping[str, Any],
    other: str,
    epsilon_of: Callable[[float], float],
    words: str,
    domain: str = "",
) -> float:
    """Return ε of a declaration with ``epsilon``, another parameter or both, which agree.

    ``words`` says what must state them, ``domain`` on what they agree.
    """
    epsilon, value = real(parameters, "epsilon"), real(parameters, other)
    if value is None:
        if epsilon is None:
            raise InputError(f"{words} must state 'epsilon' or '{other}'.")
        return check_epsilon(epsilon)
    implied = epsilon_of(value)
    if epsilon is not None and not math.isclose(
        implied, epsilon, rel_tol=_AGREEMENT, abs_tol=_AGREEMENT
    ):
        check_epsilon(epsilon)
        raise InputError(
            f"'epsilon' and '{other}' must agree: {other} = {value:.6g}{domain} means epsilon = "
            f"{implied:.6g}, but epsilon = {epsilon:.6g} is given."
        )
    return implied if epsilon is None else epsilon
