"""Conditional feature generators for double randomized response."""

# In: feature tables with labels. Out: synthetic rows of the same schema, given a label. The names
# below are imported when they are first used: torch and scikit-learn take their time.

from typing import TYPE_CHECKING

from ldpaudit.lazy import exported

if TYPE_CHECKING:
    from ldpaudit.synthesis.factory import GENERATORS, generator, load_generator, save_generator
    from ldpaudit.synthesis.gan import ConditionalGan
    from ldpaudit.synthesis.interface import Generator
    from ldpaudit.synthesis.mixture import ClassMixtures

__all__ = [
    "GENERATORS",
    "ClassMixtures",
    "ConditionalGan",
    "Generator",
    "generator",
    "load_generator",
    "save_generator",
]

__getattr__, __dir__ = exported(
    __name__,
    {
        "factory": ("GENERATORS", "generator", "load_generator", "save_generator"),
        "mixture": ("ClassMixtures",),
        "gan": ("ConditionalGan",),
        "interface": ("Generator",),
    },
)
