"""Where each built-in mechanism is, by its name; nothing is imported for it."""

from collections.abc import Mapping
from typing import Final

DEFAULT: Final = "randomized-response"
"""The mechanism where ε or λ is claimed and none is named."""
UNKNOWN: Final = "unknown"
"""The mechanism where nothing is declared."""
EXPLICIT: Final = "channel"
"""A label channel declared entry by entry."""

PLACES: Final[Mapping[str, str]] = {
    DEFAULT: "response.randomized_response:RandomizedResponse",
    EXPLICIT: "explicit:ExplicitChannel",
    UNKNOWN: "explicit:UnknownMechanism",
    "rr-top-k": "response.rr_top_k:RandomizedResponseTopK",
    "model-based-rr": "response.model_based_rr:ModelBasedRR",
    "double-rr": "response.double_rr:DoubleRR",
    "dummy-features-rr": "response.dummy_features_rr:DummyFeaturesRR",
    "rr-on-bins": "numeric.rr_on_bins:RROnBins",
    "optimal-unbiased": "numeric.optimal_unbiased:OptimalUnbiased",
    "debiased-rr": "numeric.debiased_rr:DebiasedRR",
    "laplace": "noise.continuous:Laplace",
    "discrete-laplace": "noise.discrete:DiscreteLaplace",
    "staircase": "noise.continuous:Staircase",
    "discrete-staircase": "noise.discrete:DiscreteStaircase",
    "exponential": "noise.exponential:ExponentialMechanism",
    "gaussian-rr": "response.gaussian_rr:GaussianRR",
    "label-proportions": "aggregates.label_proportions:LabelProportions",
    "frequency-oracle": "frequency_oracles.interface:FrequencyOracle",
    "by-stratum": "by_stratum:ByStratum",
}
"""The built-in families by name: a module of this package and a class, imported when needed."""
SHORT: Final = {"rr": DEFAULT}
"""Short names for users; files and results have the full name."""
