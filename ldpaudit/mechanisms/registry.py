"""The registry of mechanisms: the built-in ones and those of other packages, by name."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any, Final

from ldpaudit.errors import InputError, did_you_mean
from ldpaudit.mechanisms.finite import Family
from ldpaudit.mechanisms.foreign import check_parameters, checked, watched_family
from ldpaudit.mechanisms.interface import Mechanism, Problem, Proposal, Traits
from ldpaudit.mechanisms.listing import BUILT_IN, ORDER, ROUND, SHORT, UNKNOWN, built_in_mechanisms
from ldpaudit.plugins import GROUPS, NOT_HERE, added, check_name, check_one, imported
from ldpaudit.release import Declaration, Label
from ldpaudit.release.declaration import AMOUNTS, amounts_differ

_TEXTS: Final = ("classes", "outputs", "domains", "value")


def full_name(name: str) -> str:
    """Return the full name of a mechanism for what a user typed."""
    return SHORT.get(name, name)


@cache
def _entry_points() -> Mapping[str, EntryPoint]:
    """Return the families by name; a plug-in cannot replace a built-in one."""
    built_in = {
        name: EntryPoint(name, place, GROUPS["mechanism"])
        for name, place in built_in_mechanisms().items()
    }
    return built_in | added("mechanism", BUILT_IN)


def names() -> tuple[str, ...]:
    """Return every mechanism's name, built-in ones first."""
    return tuple(_entry_points())


@cache
def family(name: str) -> Family:
    """Return the family of the mechanism called ``name``, built-in or of another package.

    A registered class is returned as a family that builds it.

    Raises
    ------
    InputError
        If there is no mechanism of this full name, or that of another package cannot be used.
    """
    points = _entry_points()
    if name not in points and name in ORDER:
        raise InputError(f"This installation lacks the mechanism {name!r}; install ldpaudit again.")
    if name in SHORT and name not in points:
        raise InputError(
            f"The mechanism {name!r} must be declared by its full name; did you mean "
            f"{SHORT[name]!r}?"
        )
    if name not in points:
        raise InputError(
            f"The mechanism {name!r} is not one that can be audited; "
            f"choose one of {', '.join(sorted(points))}{did_you_mean(name, points, NOT_HERE)}"
        )
    if name not in BUILT_IN:
        check_one("mechanism", name)
    found = imported("mechanism", points[name])
    is_class = isinstance(found, type) and issubclass(found, Mechanism)
    traits = getattr(found, "traits", None)
    if not (is_class or isinstance(found, Family)) or not isinstance(traits, Traits):
        raise InputError(f"The plug-in {name!r} is not a mechanism with traits.")
    check_name("mechanism", name, traits.name)
    if name not in BUILT_IN and (wrong := traits.mistaken()):
        raise InputError(
            f"The plug-in {name!r} (mechanism) has other traits than the door takes: {wrong}."
        )
    if not isinstance(found, Family):
        if name not in BUILT_IN:
            check_parameters(name, found.declared)
        return _OfClass(traits, kind=found)
    return found if name in BUILT_IN else watched_family(found)


class _OfClass(Family):
    """The family of a class, which reads declarations itself."""

    def from_parameters(
        self, parameters: Mapping[str, Any], classes: tuple[Label, ...]
    ) -> Mechanism:
        kind: Any = self.kind
        name = self.traits.name

        def build() -> Any:
            return kind.from_parameters(parameters, classes)

        made: Mechanism = build() if name in BUILT_IN else checked(name, build)
        return made


def traits_of(name: str) -> Traits:
    """Return the traits of a mechanism; those of the unknown one if there is no such name."""
    return family(name if name in _entry_points() else UNKNOWN).traits


def families() -> Iterator[Family]:
    """Yield every family, built-in ones first; a broken plug-in counts only where it is named."""
    for name in names():
        try:
            yield family(name)
        except InputError:
            if name in BUILT_IN:
                raise


def candidates() -> Iterator[tuple[str, str, Callable[[Problem], Proposal]]]:
    """Yield the candidates of a design: mechanism, form ("" for an only one), what builds it."""
    for mechanism in families():
        for variant, build in mechanism.designs.items():
            yield mechanism.traits.name, variant, build


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
        parametrisations (``epsilon`` and ``lambda``, ``epsilon`` and ``scale``) disagree; or if a
        mechanism of another package states an ε that is not that of its channel.
    """
    if declaration is None:
        return family(UNKNOWN).from_parameters({}, classes)
    named, stated = family(declaration.name), dict(declaration.parameters)
    method = stated.pop(ROUND, None) if ROUND in named.traits.options else None
    try:
        made = named.from_parameters(stated, classes)
    except InputError as error:
        raise _contradicted(declaration, classes) or error from None
    if method is None:
        return made
    from ldpaudit.mechanisms.rounded import with_rounding

    return with_rounding(made, method)


def _contradicted(declaration: Declaration, classes: tuple[Label, ...]) -> InputError | None:
    """Return the error of options that state another ε than the file, in another parameter."""
    given = [name for name in declaration.added if name in AMOUNTS]
    if not given:
        return None
    of_file = {k: v for k, v in declaration.parameters.items() if k not in declaration.added}
    try:
        epsilon = from_declaration(
            replace(declaration, parameters=of_file, added=()), classes
        ).epsilon
    except InputError:
        return None
    said = " and ".join(f"{AMOUNTS[n]} = {declaration.parameters[n]:.6g}" for n in given)
    return None if epsilon is None else amounts_differ(f"ε = {epsilon:.6g}", said)


def plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a declaration's parameters as a result holds them: labels and strata as text."""
    return {key: _shown(key, value) for key, value in parameters.items()}


def _shown(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return plain_parameters(value)
    if isinstance(value, list | tuple) and key in (*_TEXTS, "strata", "mechanisms"):
        return [_shown(key, one) for one in value]
    return str(value) if key in _TEXTS else value
