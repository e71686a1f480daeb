"""Generators by their names in the contract."""

from typing import Any, Final

from ldpaudit.errors import InputError
from ldpaudit.synthesis.gan.generator import ConditionalGan
from ldpaudit.synthesis.interface import Generator
from ldpaudit.synthesis.mixture import ClassMixtures

GENERATORS: Final = ("gan", "mixture")
"""The generators that are fitted; a user's own table is :class:`UserTable`."""


def generator(name: str, **options: Any) -> Generator:
    """Return an unfitted generator.

    Parameters
    ----------
    name : {"gan", "mixture"}
    **options
        Those of :class:`ConditionalGan` or :class:`ClassMixtures`; ``trained_on`` says whose rows
        it will be fitted on, ``"private"`` unless stated.

    Raises
    ------
    InputError
        If the generator or an option is unknown.
    """
    makers: dict[str, type[ConditionalGan] | type[ClassMixtures]] = {
        "gan": ConditionalGan,
        "mixture": ClassMixtures,
    }
    if name not in makers:
        raise InputError(f"There is no generator {name!r}; choose from {', '.join(GENERATORS)}.")
    if options.get("trained_on", "private") not in ("public", "private"):
        raise InputError("The 'trained_on' parameter must be 'public' or 'private'.")
    try:
        return makers[name](**options)
    except TypeError:
        raise InputError(f"The generator {name!r} has no such option; see its class.") from None
