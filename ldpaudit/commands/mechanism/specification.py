"""From a name and its parameters to a mechanism, prior-based ones included."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ldpaudit.commands.mechanism.domain import Domain, grid
from ldpaudit.errors import InputError, did_you_mean
from ldpaudit.mechanisms import from_declaration, names
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.mechanisms.parameters import (
    check_epsilon,
    check_numeric_classes,
    check_positive,
    check_proportion,
)
from ldpaudit.release import Declaration, FloatArray, Label

_LAMBDA: Final = frozenset(
    {"randomized-response", "model-based-rr", "double-rr", "dummy-features-rr", "gaussian-rr"}
)
_PRIOR: Final = frozenset({"rr-top-k", "rr-on-bins", "optimal-unbiased"})
_RANGE: Final = frozenset(
    {"laplace", "discrete-laplace", "staircase", "discrete-staircase", "exponential"}
)
_ELSEWHERE: Final = {
    "channel": "A channel matrix is analysed by 'ldpaudit mechanism channel FILE'.",
    "label-proportions": "Label proportions are declared in the file, with their bags.",
    "unknown": "Nothing is known of the mechanism 'unknown'.",
}


@dataclass(frozen=True)
class Specification:
    """A mechanism as it is asked for: a name, ε or λ, and whatever else it takes.

    Parameters
    ----------
    name : str
        A name of the contract.
    epsilon, noise : float or None
        ε in nats or λ; not both.
    more : mapping
        Further parameters, such as ``clipped``, ``gamma``, ``sigma``, ``floor``.
    loss : {"squared", "absolute", "poisson"}
        What the mechanisms that are designed for a prior minimise.
    """

    name: str
    epsilon: float | None = None
    noise: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    loss: Loss = "squared"


def settings(given: Sequence[str]) -> dict[str, Any]:
    """Read ``KEY=VALUE`` parameters: numbers, ``true`` and ``false``, else text.

    Raises
    ------
    InputError
        If one is not written so, or a key occurs twice.
    """
    found: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key or key in found:
            raise InputError("Each further parameter must be KEY=VALUE, each key once.")
        found[key] = _value(value.strip())
    return found


def _value(text: str) -> float | bool | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return text


def build(wanted: Specification, domain: Domain) -> Mechanism:
    """Build the mechanism on the labels of a domain.

    Raises
    ------
    InputError
        If the name is not known, a parameter is missing, unknown or out of range, or the mechanism
        needs a prior or numeric labels and there are none.
    """
    if wanted.name in _ELSEWHERE:
        raise InputError(_ELSEWHERE[wanted.name])
    if wanted.name not in names():
        choices = sorted(set(names()) - set(_ELSEWHERE))
        near = did_you_mean(wanted.name, choices)
        raise InputError(f"There is no such mechanism; choose one of {', '.join(choices)}{near}")
    if (wanted.epsilon is None) == (wanted.noise is None) and "scale" not in wanted.more:
        raise InputError(f"State one of --epsilon and --lambda{_misspelt(wanted.more)}")
    if wanted.noise is not None and wanted.name not in _LAMBDA:
        raise InputError(f"The mechanism {wanted.name!r} is stated by --epsilon; it has no λ.")
    if wanted.epsilon is not None:
        check_epsilon(wanted.epsilon)
    if wanted.noise is not None:
        check_proportion("lambda", wanted.noise)
    if wanted.name in _PRIOR:
        return _from_prior(wanted, domain)
    parameters = _parameters(wanted, domain)
    return from_declaration(Declaration(wanted.name, parameters, "options"), domain.classes or ())


def _misspelt(more: Mapping[str, Any]) -> str:
    """Return the end of the sentence that asks for ε or λ, with the key that may mean it."""
    ends = (did_you_mean(key, ("epsilon", "lambda")) for key in more)
    return next((end for end in ends if end != "."), ".")


def _parameters(wanted: Specification, domain: Domain) -> dict[str, Any]:
    stated: dict[str, Any] = {**wanted.more}
    if wanted.epsilon is not None:
        stated["epsilon"] = wanted.epsilon
    if wanted.noise is not None:
        stated["lambda"] = wanted.noise
    if wanted.name in _RANGE:
        return stated | _bounds(wanted.name, domain)
    stated["classes"] = list(_classes(domain))
    if wanted.name == "model-based-rr" and "epsilon" in stated:
        stated["lambda"] = _model_noise(stated.pop("epsilon"), stated.get("floor", 0.0))
    if wanted.name == "gaussian-rr":
        return _gaussian(stated)
    return stated


def _bounds(name: str, domain: Domain) -> dict[str, Any]:
    if domain.range is None:
        raise InputError(
            f"The mechanism {name!r} must have labels on a range: --labels LO:HI:STEP."
        )
    return domain.range.declaration()


def _classes(domain: Domain) -> tuple[Label, ...]:
    if domain.classes is not None:
        return domain.classes
    assert domain.range is not None
    return grid(domain.range).classes


def _model_noise(epsilon: float, floor: Any) -> float:
    """Return the λ at which no row's ε exceeds the one asked for: 1/(1 + f(e^ε − 1))."""
    if isinstance(floor, bool | str) or not floor > 0:
        raise InputError(
            "Model-based randomized response has a finite ε with a floor above 0 only: state "
            "--set floor=F, or --lambda."
        )
    return 1 / (1 + float(floor) * math.expm1(epsilon))


def _gaussian(stated: dict[str, Any]) -> dict[str, Any]:
    """Find σ where only the features' (ε, δ) is stated."""
    missing = [k for k in ("radius", "feature_epsilon", "feature_delta") if k not in stated]
    if missing:
        raise InputError(
            "Gaussian features need --set radius=R, feature_epsilon=E and feature_delta=D "
            "(and sigma=S, else the least σ is used)."
        )
    if "sigma" not in stated:
        from ldpaudit.mechanisms.response.gaussian import gaussian_sigma

        width = 2 * check_positive("radius", stated["radius"])
        stated["sigma"] = gaussian_sigma(stated["feature_epsilon"], stated["feature_delta"], width)
    return stated


def _from_prior(wanted: Specification, domain: Domain) -> Mechanism:
    classes, epsilon = _classes(domain), wanted.epsilon
    if wanted.more:
        raise InputError(f"The mechanism {wanted.name!r} takes no further parameter here.")
    if domain.prior is None or epsilon is None:
        raise InputError(f"The mechanism {wanted.name!r} is made for a prior: state --prior FILE.")
    if wanted.name == "rr-top-k":
        from ldpaudit.mechanisms.response.rr_top_k import RandomizedResponseTopK

        return RandomizedResponseTopK.from_prior(classes, domain.prior, epsilon)
    return _numeric_from_prior(wanted, check_numeric_classes(classes), domain.prior, epsilon)


def _numeric_from_prior(
    wanted: Specification, classes: tuple[Label, ...], prior: FloatArray, epsilon: float
) -> Mechanism:
    if wanted.name == "rr-on-bins":
        from ldpaudit.mechanisms.numeric.bin_design import optimal_bins

        return optimal_bins(classes, prior, epsilon, wanted.loss).mechanism
    from ldpaudit.mechanisms.numeric.unbiased_design import optimal_unbiased

    return optimal_unbiased(classes, prior, epsilon, wanted.loss).mechanism
