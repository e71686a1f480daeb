"""The mechanisms of this package by name; a list that is quick to read."""

from collections.abc import Mapping
from typing import Final

from ldpaudit.plugins import ours

# The mechanism where ε or λ is claimed and none is named.
DEFAULT: Final = "randomized-response"
# The mechanism where nothing is declared.
UNKNOWN: Final = "unknown"
# A label channel declared entry by entry.
EXPLICIT: Final = "channel"

# The declared parameter, and the option of ``privatize``, that says how labels were rounded.
ROUND: Final = "round"

# All of them in their order. Those without a place below are registered as those of other
# packages are.
ORDER: Final = (
    DEFAULT,
    EXPLICIT,
    UNKNOWN,
    "rr-top-k",
    "model-based-rr",
    "multi-stage-rr",
    "double-rr",
    "dummy-features-rr",
    "rr-on-bins",
    "optimal-unbiased",
    "debiased-rr",
    "laplace",
    "discrete-laplace",
    "staircase",
    "discrete-staircase",
    "exponential",
    "gaussian-rr",
    "label-proportions",
    "frequency-oracle",
    "by-stratum",
)
# The families of the core by name: a module of this package and a name, imported when needed.
PLACES: Final[Mapping[str, str]] = {
    DEFAULT: "response:RandomizedResponse",
    EXPLICIT: "response:CHANNEL",
    UNKNOWN: "response:UnknownMechanism",
    "rr-top-k": "response:RandomizedResponseTopK",
    "dummy-features-rr": "response:DummyFeaturesRR",
    "laplace": "noise:Laplace",
    "discrete-laplace": "noise:DiscreteLaplace",
    "staircase": "noise:Staircase",
    "discrete-staircase": "noise:DiscreteStaircase",
    "exponential": "noise:Exponential",
}
# Short names for users; files and results have the full name.
SHORT: Final = {"rr": DEFAULT}
# The names that no mechanism of others may have.
BUILT_IN: Final = frozenset((*ORDER, *SHORT))


def built_in_mechanisms() -> dict[str, str]:
    """Return the mechanisms of this installation in their order, with the place of each."""
    core = {name: f"ldpaudit.mechanisms.{place}" for name, place in PLACES.items()}
    places = {**core, **{name: point.value for name, point in ours("mechanism").items()}}
    return {name: places[name] for name in ORDER if name in places}
