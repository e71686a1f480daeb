"""The registry of mechanisms: the built-in ones and those of other packages."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint

from ldpaudit.errors import InputError, did_you_mean
from ldpaudit.mechanisms.design import Candidate
from ldpaudit.mechanisms.interface import Mechanism, Traits
from ldpaudit.mechanisms.numeric.rounded_labels import ROUND, with_rounding
from ldpaudit.mechanisms.places import PLACES, SHORT, UNKNOWN
from ldpaudit.plugins import GROUPS, NOT_HERE, added, check_name, check_one, unloadable
from ldpaudit.release import Declaration, Label


def full_name(name: str) -> str:
    """Return the full name of a mechanism for what a user typed."""
    return SHORT.get(name, name)


@cache
def _entry_points() -> Mapping[str, EntryPoint]:
    """Return the families by name; a plug-in cannot replace a built-in one."""
    built_in = {
        name: EntryPoint(name, f"ldpaudit.mechanisms.{place}", GROUPS["mechanism"])
        for name, place in PLACES.items()
    }
    return built_in | added("mechanism", PLACES.keys() | SHORT.keys())


def names() -> tuple[str, ...]:
    """Return every mechanism's name, built-in ones first."""
    return tuple(_entry_points())


@cache
def family(name: str) -> type[Mechanism]:
    """Return the class of a mechanism.

    Raises
    ------
    InputError
        If there is no mechanism of that name, or the plug-in of that name is not one.
    """
    points = _entry_points()
    if name not in points:
        raise InputError(
            f"The mechanism {name!r} is not one that can be audited; "
            f"choose one of {', '.join(sorted(points))}{did_you_mean(name, points, NOT_HERE)}"
        )
    if name not in PLACES:
        check_one("mechanism", name)
    try:
        mechanism: type[Mechanism] = points[name].load()
    except (Exception, SystemExit) as error:
        raise unloadable("mechanism", name, error) from error
    is_class = isinstance(mechanism, type) and issubclass(mechanism, Mechanism)
    traits = getattr(mechanism, "traits", None)
    if not is_class or not isinstance(traits, Traits):
        raise InputError(f"The plug-in {name!r} is not a mechanism with traits.")
    check_name("mechanism", name, traits.name)
    if name not in PLACES and (wrong := traits.mistaken()):
        raise InputError(f"The plug-in {name!r} states traits with unknown words: {wrong}.")
    return mechanism


def traits_of(name: str) -> Traits:
    """Return the traits of a mechanism; those of the unknown one if there is no such name."""
    return family(name if name in _entry_points() else UNKNOWN).traits


def families() -> Iterator[type[Mechanism]]:
    """Yield every family, built-in ones first; a broken plug-in counts only where it is named."""
    for name in names():
        try:
            yield family(name)
        except InputError:
            if name in PLACES:
                raise


def candidates() -> Iterator[tuple[str, Candidate]]:
    """Yield the candidates of a design with their mechanism's name."""
    for mechanism in families():
        for candidate in mechanism.candidates():
            yield mechanism.traits.name, candidate


def applicable() -> tuple[str, ...]:
    """Return the mechanisms that can be applied to a table, in alphabetical order."""
    return tuple(sorted(f.traits.name for f in families() if f.traits.options))


def from_declaration(declaration: Declaration | None, classes: tuple[Label, ...]) -> Mechanism:
    """Build the claimed mechanism, with every parameter checked.

    Parameters
    ----------
    declaration : Declaration or None
        None: ``unknown``.
    classes : tuple
        The true labels to use where the declaration states none.

    Raises
    ------
    InputError
        If the name is unknown, a parameter is missing, unknown or out of range, or two
        parametrisations (``epsilon`` and ``lambda``, ``epsilon`` and ``scale``) disagree.
    """
    if declaration is None:
        return family(UNKNOWN).from_parameters({}, classes)
    named, stated = family(declaration.name), dict(declaration.parameters)
    method = stated.pop(ROUND, None) if ROUND in named.traits.options else None
    return with_rounding(named.from_parameters(stated, classes), method)
