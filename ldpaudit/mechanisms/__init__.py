"""Mechanisms: what was claimed, and its exact privacy analysis."""

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from ldpaudit.errors import InputError, did_you_mean
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.explicit import ExplicitChannel, UnknownMechanism
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.response.randomized_response import (
    RandomizedResponse,
    epsilon_of_lambda,
    lambda_of_epsilon,
)
from ldpaudit.release import Declaration, Label

__all__ = [
    "Channel",
    "ExplicitChannel",
    "Mechanism",
    "RandomizedResponse",
    "UnknownMechanism",
    "epsilon_of_lambda",
    "from_declaration",
    "full_name",
    "lambda_of_epsilon",
    "names",
]

_FAMILIES: Final[Mapping[str, tuple[str, str]]] = {
    "randomized-response": ("response.randomized_response", "RandomizedResponse"),
    "channel": ("explicit", "ExplicitChannel"),
    "unknown": ("explicit", "UnknownMechanism"),
    "rr-top-k": ("response.rr_top_k", "RandomizedResponseTopK"),
    "model-based-rr": ("response.model_based_rr", "ModelBasedRR"),
    "double-rr": ("response.double_rr", "DoubleRR"),
    "dummy-features-rr": ("response.dummy_features_rr", "DummyFeaturesRR"),
    "rr-on-bins": ("numeric.rr_on_bins", "RROnBins"),
    "optimal-unbiased": ("numeric.optimal_unbiased", "OptimalUnbiased"),
    "debiased-rr": ("numeric.debiased_rr", "DebiasedRR"),
    "laplace": ("noise.laplace", "Laplace"),
    "discrete-laplace": ("noise.discrete_laplace", "DiscreteLaplace"),
    "staircase": ("noise.staircase", "Staircase"),
    "discrete-staircase": ("noise.staircase", "DiscreteStaircase"),
    "exponential": ("noise.exponential", "ExponentialFamily"),
    "gaussian-rr": ("response.gaussian_rr", "GaussianRR"),
    "label-proportions": ("aggregates.label_proportions", "LabelProportions"),
    "frequency-oracle": ("frequency_oracles", "FrequencyOracle"),
}
"""Where each name of the contract lives: a module of this package and a class with the class
method ``from_parameters(parameters, classes)``; imported when it is declared."""


_SHORT_NAMES: Final = {"rr": "randomized-response"}
"""What a user may type; files and results have the full name."""


def full_name(name: str) -> str:
    """Return the name of the contract for a name that a user typed, itself where it is none."""
    return _SHORT_NAMES.get(name, name)


def names() -> tuple[str, ...]:
    """Return every mechanism name that :func:`from_declaration` can build."""
    return tuple(_FAMILIES)


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
        If the name is not known, a parameter is missing, unknown or out of range, or two
        parametrisations (``epsilon`` and ``lambda``, ``epsilon`` and ``scale``) disagree.
    """
    if declaration is None:
        return UnknownMechanism()
    if declaration.name not in _FAMILIES:
        raise InputError(
            f"The mechanism {declaration.name!r} is not one that can be audited; "
            f"choose one of {', '.join(sorted(_FAMILIES))}"
            f"{did_you_mean(declaration.name, _FAMILIES)}"
        )
    module, family = _FAMILIES[declaration.name]
    built: Mechanism = getattr(
        import_module(f"ldpaudit.mechanisms.{module}"), family
    ).from_parameters(declaration.parameters, classes)
    return built
