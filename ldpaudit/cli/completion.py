"""What a shell offers for a value: names, from lists that are quick to read."""

from collections.abc import Callable, Iterable
from typing import Final

from ldpaudit.audits.listing import AUDITS, BUILT_IN
from ldpaudit.mechanisms.listing import PLACES, SHORT
from ldpaudit.plugins import added


def _mechanisms() -> Iterable[str]:
    return (*PLACES, *SHORT, *added("mechanism", PLACES))


def _audits() -> Iterable[str]:
    return (*AUDITS, *added("audit", BUILT_IN))


_NAMES: Final[dict[str, Callable[[], Iterable[str]]]] = {
    "--mechanism": _mechanisms,
    "name": _mechanisms,
    "--only": _audits,
    "--skip": _audits,
}
"""What is offered, by the name of an option or an argument."""


def completer(name: str) -> Callable[[str], list[str]] | None:
    """Return what completes the value of an option or an argument, None where files do."""
    names = _NAMES.get(name)
    if names is None:
        return None
    return lambda incomplete: [one for one in names() if one.startswith(incomplete)]
