"""Mechanisms: what was claimed, and its exact privacy analysis."""

# In: a declaration or options. Out: a frozen value that answers for itself: channel, ε in nats,
# δ(ε), Rényi curve, errors, and how labels are released. Each family is one module. The names below
# are imported when they are first used.

from typing import TYPE_CHECKING

from ldpaudit.lazy import exported

if TYPE_CHECKING:
    from ldpaudit.mechanisms.channel import Channel
    from ldpaudit.mechanisms.finite import Family
    from ldpaudit.mechanisms.interface import Mechanism, MechanismOptions, Traits
    from ldpaudit.mechanisms.label_range import LabelRange
    from ldpaudit.mechanisms.listing import UNKNOWN
    from ldpaudit.mechanisms.noise import (
        DiscreteLaplace,
        DiscreteStaircase,
        Exponential,
        Laplace,
        Staircase,
    )
    from ldpaudit.mechanisms.registry import (
        family,
        from_declaration,
        full_name,
        names,
        traits_of,
    )
    from ldpaudit.mechanisms.response import (
        DummyFeaturesRR,
        ExplicitChannel,
        RandomizedResponse,
        RandomizedResponseTopK,
        UnknownMechanism,
        epsilon_of_lambda,
        lambda_of_epsilon,
    )

__all__ = [
    "UNKNOWN",
    "Channel",
    "DiscreteLaplace",
    "DiscreteStaircase",
    "DummyFeaturesRR",
    "ExplicitChannel",
    "Exponential",
    "Family",
    "LabelRange",
    "Laplace",
    "Mechanism",
    "MechanismOptions",
    "RandomizedResponse",
    "RandomizedResponseTopK",
    "Staircase",
    "Traits",
    "UnknownMechanism",
    "epsilon_of_lambda",
    "family",
    "from_declaration",
    "full_name",
    "lambda_of_epsilon",
    "names",
    "traits_of",
]

__getattr__, __dir__ = exported(
    __name__,
    {
        "channel": ("Channel",),
        "finite": ("Family",),
        "interface": (
            "Mechanism",
            "MechanismOptions",
            "Traits",
        ),
        "label_range": ("LabelRange",),
        "listing": ("UNKNOWN",),
        "noise": (
            "DiscreteLaplace",
            "DiscreteStaircase",
            "Exponential",
            "Laplace",
            "Staircase",
        ),
        "registry": (
            "family",
            "from_declaration",
            "full_name",
            "names",
            "traits_of",
        ),
        "response": (
            "DummyFeaturesRR",
            "ExplicitChannel",
            "RandomizedResponse",
            "RandomizedResponseTopK",
            "UnknownMechanism",
            "epsilon_of_lambda",
            "lambda_of_epsilon",
        ),
    },
)
