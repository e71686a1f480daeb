"""Generators by their names in the contract."""

from typing import Any, Final

from ldpaudit.errors import InputError
from ldpaudit.synthesis.gan import ConditionalGan
from ldpaudit.synthesis.interface import Generator
from ldpaudit.synthesis.mixture import ClassMixtures

GENERATORS: Final = ("gan", "mixture")


MAKERS: Final[dict[str, type[ConditionalGan] | type[ClassMixtures]]] = {
    "gan": ConditionalGan,
    "mixture": ClassMixtures,
}


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
    if name not in MAKERS:
        raise InputError(f"There is no generator {name!r}; choose from {', '.join(GENERATORS)}.")
    if options.get("trained_on", "private") not in ("public", "private"):
        raise InputError("The 'trained_on' parameter must be 'public' or 'private'.")
    try:
        return MAKERS[name](**options)
    except TypeError:
        raise InputError(f"The generator {name!r} has no such option; see its class.") from None
