"""Mechanisms: what was claimed, and its exact privacy analysis.

In: a declaration or options. Out: a frozen value that answers for itself: channel, ε in nats, δ(ε),
Rényi curve, errors, and how labels are released. Each family is one module.
"""

from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.explicit import ExplicitChannel, UnknownMechanism
from ldpaudit.mechanisms.interface import Mechanism, Traits
from ldpaudit.mechanisms.options import MechanismOptions
from ldpaudit.mechanisms.registry import (
    UNKNOWN,
    family,
    from_declaration,
    full_name,
    names,
    traits_of,
)
from ldpaudit.mechanisms.response.randomized_response import (
    RandomizedResponse,
    epsilon_of_lambda,
    lambda_of_epsilon,
)

__all__ = [
    "UNKNOWN",
    "Channel",
    "ExplicitChannel",
    "Mechanism",
    "MechanismOptions",
    "RandomizedResponse",
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
