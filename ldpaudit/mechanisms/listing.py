"""The built-in mechanisms by name; a list that is quick to read."""

from collections.abc import Mapping
from typing import Final

# The mechanism where ε or λ is claimed and none is named.
DEFAULT: Final = "randomized-response"
# The mechanism where nothing is declared.
UNKNOWN: Final = "unknown"
# A label channel declared entry by entry.
EXPLICIT: Final = "channel"

# The built-in families by name: a module of this package and a name, imported when needed.
PLACES: Final[Mapping[str, str]] = {
    DEFAULT: "response:RandomizedResponse",
    EXPLICIT: "response:CHANNEL",
    UNKNOWN: "response:UnknownMechanism",
    "rr-top-k": "response:RandomizedResponseTopK",
    "model-based-rr": "with_features:ModelBasedRR",
    "multi-stage-rr": "with_features:STAGED",
    "double-rr": "with_features:DoubleRR",
    "dummy-features-rr": "response:DummyFeaturesRR",
    "rr-on-bins": "bins:RROnBins",
    "optimal-unbiased": "unbiased:OptimalUnbiased",
    "debiased-rr": "bins:DebiasedRR",
    "laplace": "noise:Laplace",
    "discrete-laplace": "noise:DiscreteLaplace",
    "staircase": "noise:Staircase",
    "discrete-staircase": "noise:DiscreteStaircase",
    "exponential": "noise:Exponential",
    "gaussian-rr": "gaussian:GaussianRR",
    "label-proportions": "label_proportions:LabelProportions",
    "frequency-oracle": "frequency_oracles:ORACLES",
    "by-stratum": "by_stratum:ByStratum",
}
# Short names for users; files and results have the full name.
SHORT: Final = {"rr": DEFAULT}
