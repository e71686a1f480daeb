"""Public names of a package that are imported when they are first used."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def exported(package: str, places: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """Return a package's ``__getattr__``, which imports a name from the module that has it.

    The package repeats the imports under ``TYPE_CHECKING``, for type checkers and editors.

    Parameters
    ----------
    package : str
        The package's ``__name__``.
    places : mapping
        For each module, by its name below the package, the names that it has.
    """
    modules = {name: module for module, names in places.items() for name in names}

    def attribute(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return attribute
