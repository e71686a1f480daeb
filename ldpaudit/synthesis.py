"""Conditional feature generators for double randomized response."""

# In: feature tables with labels. Out: synthetic rows of the same schema, given a label. The names
# below are imported when they are first used: torch and scikit-learn take their time.

from ldpaudit.lazy import exported

__all__ = [
    "GENERATORS",
    "ClassMixtures",
    "ConditionalGan",
    "Generator",
    "generator",
    "load_generator",
    "save_generator",
]

_MADE = "ldpaudit.extras.release.synthesis"
__getattr__, __dir__ = exported(
    __name__,
    {
        f"{_MADE}.factory": ("GENERATORS", "generator", "load_generator", "save_generator"),
        f"{_MADE}.mixture": ("ClassMixtures",),
        f"{_MADE}.gan": ("ConditionalGan",),
        "ldpaudit.generators": ("Generator",),
    },
)
