"""Mechanisms: what was claimed, and its exact privacy analysis.

In: a declaration or options. Out: a frozen value that answers for itself: channel, ε in nats, δ(ε),
Rényi curve, errors, and how labels are released. Each family is one module. The names below
are imported when they are first used.
"""

from typing import TYPE_CHECKING

from ldpaudit.lazy import exported

if TYPE_CHECKING:
    from ldpaudit.mechanisms.aggregates.label_proportions import LabelProportions
    from ldpaudit.mechanisms.by_stratum import ByStratum
    from ldpaudit.mechanisms.channel import Channel
    from ldpaudit.mechanisms.explicit import ExplicitChannel, UnknownMechanism
    from ldpaudit.mechanisms.frequency_oracles.interface import FrequencyOracle
    from ldpaudit.mechanisms.interface import Mechanism, Traits
    from ldpaudit.mechanisms.label_range import LabelRange
    from ldpaudit.mechanisms.noise.continuous import Laplace, Staircase
    from ldpaudit.mechanisms.noise.discrete import DiscreteLaplace, DiscreteStaircase
    from ldpaudit.mechanisms.noise.exponential import ExponentialMechanism
    from ldpaudit.mechanisms.numeric.debiased_rr import DebiasedRR
    from ldpaudit.mechanisms.numeric.optimal_unbiased import OptimalUnbiased
    from ldpaudit.mechanisms.numeric.rr_on_bins import RROnBins
    from ldpaudit.mechanisms.options import MechanismOptions
    from ldpaudit.mechanisms.places import UNKNOWN
    from ldpaudit.mechanisms.registry import (
        family,
        from_declaration,
        full_name,
        names,
        traits_of,
    )
    from ldpaudit.mechanisms.response.double_rr import DoubleRR
    from ldpaudit.mechanisms.response.dummy_features_rr import DummyFeaturesRR
    from ldpaudit.mechanisms.response.gaussian_rr import GaussianRR
    from ldpaudit.mechanisms.response.model_based_rr import ModelBasedRR
    from ldpaudit.mechanisms.response.randomized_response import (
        RandomizedResponse,
        epsilon_of_lambda,
        lambda_of_epsilon,
    )
    from ldpaudit.mechanisms.response.rr_top_k import RandomizedResponseTopK

__all__ = [
    "UNKNOWN",
    "ByStratum",
    "Channel",
    "DebiasedRR",
    "DiscreteLaplace",
    "DiscreteStaircase",
    "DoubleRR",
    "DummyFeaturesRR",
    "ExplicitChannel",
    "ExponentialMechanism",
    "FrequencyOracle",
    "GaussianRR",
    "LabelProportions",
    "LabelRange",
    "Laplace",
    "Mechanism",
    "MechanismOptions",
    "ModelBasedRR",
    "OptimalUnbiased",
    "RROnBins",
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
        "aggregates.label_proportions": ("LabelProportions",),
        "by_stratum": ("ByStratum",),
        "channel": ("Channel",),
        "explicit": ("ExplicitChannel", "UnknownMechanism"),
        "interface": ("Mechanism", "Traits"),
        "frequency_oracles.interface": ("FrequencyOracle",),
        "label_range": ("LabelRange",),
        "noise.continuous": ("Laplace", "Staircase"),
        "noise.discrete": ("DiscreteLaplace", "DiscreteStaircase"),
        "noise.exponential": ("ExponentialMechanism",),
        "numeric.debiased_rr": ("DebiasedRR",),
        "numeric.optimal_unbiased": ("OptimalUnbiased",),
        "numeric.rr_on_bins": ("RROnBins",),
        "options": ("MechanismOptions",),
        "places": ("UNKNOWN",),
        "registry": ("family", "from_declaration", "full_name", "names", "traits_of"),
        "response.double_rr": ("DoubleRR",),
        "response.dummy_features_rr": ("DummyFeaturesRR",),
        "response.gaussian_rr": ("GaussianRR",),
        "response.model_based_rr": ("ModelBasedRR",),
        "response.randomized_response": (
            "RandomizedResponse",
            "epsilon_of_lambda",
            "lambda_of_epsilon",
        ),
        "response.rr_top_k": ("RandomizedResponseTopK",),
    },
)
