"""From what was asked for and the survey of the labels to the mechanism."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ldpaudit.commands.privatize.labels.priors import Prior
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.datasets import read_channel
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import from_declaration
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.parameters import (
    check_classes,
    check_delta,
    check_numeric_classes,
    check_positive,
)
from ldpaudit.mechanisms.response.gaussian import gaussian_epsilon, gaussian_sigma
from ldpaudit.mechanisms.response.rr_top_k import RandomizedResponseTopK
from ldpaudit.release import Declaration, Label

NOISE: Final = ("laplace", "discrete-laplace", "staircase", "discrete-staircase", "exponential")
"""Mechanisms that need a range of numeric labels."""
NUMERIC: Final = (*NOISE, "rr-on-bins", "optimal-unbiased", "debiased-rr")
_CONTINUOUS: Final = ("laplace", "staircase")


@dataclass(frozen=True)
class DeclaredLabels:
    """What is known of the labels before any data is read.

    Attributes
    ----------
    range : LabelRange or None
        The range of numeric labels.
    classes : tuple or None
        The labels one by one; None where they are to be read from the data.
    """

    range: LabelRange | None
    classes: tuple[Label, ...] | None


def declared_labels(
    request: PrivatizeRequest, of_prior: tuple[Label, ...] | None
) -> DeclaredLabels:
    """Return the labels that the options state.

    Parameters
    ----------
    request : PrivatizeRequest
    of_prior : tuple or None
        The labels of the prior's file: the classes, where no option states any.

    Raises
    ------
    InputError
        If they are no range of numbers, or a numeric mechanism is given none.
    """
    if request.mechanism == "channel":
        return DeclaredLabels(None, check_classes(_channel(request).parameters["classes"]))
    if request.labels is not None:
        return DeclaredLabels(_range(request), None)
    if request.mechanism in NOISE:
        raise InputError(
            f"The mechanism {request.mechanism!r} must be given the labels' range with --labels "
            f"LO:HI[:STEP]; it is declared, never read from the data."
        )
    classes = request.classes if request.classes is not None else of_prior
    if classes is None and request.mechanism in NUMERIC:
        raise InputError(
            f"The mechanism {request.mechanism!r} must be given its labels with --labels "
            f"LO:HI:STEP or --classes; they are declared, never read from the data."
        )
    return DeclaredLabels(None, None if classes is None else _checked(request, classes))


def _checked(request: PrivatizeRequest, classes: tuple[Label, ...]) -> tuple[Label, ...]:
    numeric = request.mechanism in NUMERIC
    return check_numeric_classes(classes) if numeric else check_classes(classes)


def _range(request: PrivatizeRequest) -> LabelRange:
    assert request.labels is not None
    found = LabelRange.parse(request.labels)
    # The discrete variant by default: what has no step counts in ones.
    if found.step is None and request.mechanism not in _CONTINUOUS:
        return LabelRange(found.low, found.high, 1.0)
    return found


def build(
    request: PrivatizeRequest,
    labels: DeclaredLabels,
    classes: tuple[Label, ...],
    prior: Callable[[tuple[Label, ...]], Prior],
) -> Mechanism:
    """Return the mechanism.

    Parameters
    ----------
    request : PrivatizeRequest
    labels : DeclaredLabels
    classes : tuple
        The k labels; empty for a range of real numbers.
    prior : callable
        Gives the prior of these labels; called where a design needs one.

    Raises
    ------
    InputError
        If a parameter is out of range, or ε would be infinite.
    """
    name = request.mechanism
    if name == "channel":
        built = from_declaration(_channel(request), classes)
    elif name in NOISE:
        built = from_declaration(Declaration(name, _noise_parameters(request, labels)), classes)
    elif name in ("rr-on-bins", "optimal-unbiased", "rr-top-k"):
        built = _designed(request, classes, prior(classes))
    else:
        built = from_declaration(Declaration(name, _parameters(request, classes)), classes)
    if built.epsilon is None or not math.isfinite(built.epsilon):
        raise InputError(
            "With these parameters epsilon is infinite: some true label would be given away for "
            "certain; give a larger lambda or floor, or a channel without zeros."
        )
    return built


def _channel(request: PrivatizeRequest) -> Declaration:
    if request.channel is None:
        raise InputError("The mechanism 'channel' must be given its matrix with --channel FILE.")
    from ldpaudit.datasets.labels import read_texts

    stated = read_channel(request.channel)
    named = {key: list(read_texts(stated.parameters[key])) for key in ("classes", "outputs")}
    return Declaration("channel", {**stated.parameters, **named}, "options")


def _noise_parameters(request: PrivatizeRequest, labels: DeclaredLabels) -> dict[str, Any]:
    assert labels.range is not None
    parameters = labels.range.declaration() | {"epsilon": request.epsilon}
    return (
        parameters
        if request.mechanism == "exponential"
        else (parameters | {"clipped": request.clipped})
    )


def _parameters(request: PrivatizeRequest, classes: tuple[Label, ...]) -> dict[str, Any]:
    name, parameters = request.mechanism, dict[str, Any](classes=list(classes))
    if name == "model-based-rr":
        return parameters | _model_parameters(request, len(classes))
    if request.epsilon is not None:
        parameters["epsilon"] = request.epsilon
    else:
        parameters["lambda"] = request.noise
    return parameters | (_gaussian_parameters(request) if name == "gaussian-rr" else {})


def _model_parameters(request: PrivatizeRequest, k: int) -> dict[str, float]:
    """Return λ and the floor f; of ε = log(1 + (1 − λ)/(λ f)), λ = 1/(1 + f(e^ε − 1))."""
    floor = 1 / (10 * max(k, 1)) if request.floor is None else request.floor
    if request.epsilon is None:
        assert request.noise is not None
        return {"lambda": request.noise, "floor": floor}
    if not floor > 0:
        raise InputError("--floor must be above 0: with 0 no finite epsilon holds in every row.")
    # With ε beyond all floats λ is 0, which is refused as infinite ε.
    decay = math.exp(-request.epsilon)
    return {"lambda": decay / (decay + floor * -math.expm1(-request.epsilon)), "floor": floor}


def _gaussian_parameters(request: PrivatizeRequest) -> dict[str, float]:
    """Return R, σ and the exact (ε, δ) of the features; σ or their ε is given."""
    radius = check_positive("radius", _needed(request, "radius"))
    delta = check_delta(_needed(request, "delta"))
    if (request.sigma is None) == (request.feature_epsilon is None):
        raise InputError("The mechanism 'gaussian-rr' must be given --sigma or --feature-epsilon.")
    if request.sigma is not None:
        sigma = check_positive("sigma", request.sigma)
        epsilon = gaussian_epsilon(sigma, 2 * radius, delta)
    else:
        assert request.feature_epsilon is not None
        epsilon = request.feature_epsilon
        sigma = gaussian_sigma(epsilon, delta, 2 * radius)
    own = {"radius": radius, "sigma": sigma}
    return own | {"feature_epsilon": epsilon, "feature_delta": delta}


def _needed(request: PrivatizeRequest, field: str) -> float:
    value: float | None = getattr(request, field)
    if value is None:
        raise InputError(f"The mechanism {request.mechanism!r} must be given --{field}.")
    return value


def _designed(request: PrivatizeRequest, classes: tuple[Label, ...], prior: Prior) -> Mechanism:
    assert request.epsilon is not None
    epsilon = request.epsilon - prior.epsilon
    if request.mechanism == "rr-top-k":
        return RandomizedResponseTopK.from_prior(classes, prior.probabilities, epsilon)
    loss = request.loss or "squared"
    if request.mechanism == "rr-on-bins":
        from ldpaudit.mechanisms.numeric.bin_design import optimal_bins

        return optimal_bins(classes, prior.probabilities, epsilon, loss).mechanism
    from ldpaudit.mechanisms.numeric.unbiased_design import optimal_unbiased

    return optimal_unbiased(classes, prior.probabilities, epsilon, loss).mechanism
