"""Public names of a package that are imported when they are first used."""

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any


def exported(
    package: str, places: Mapping[str, Collection[str]], packages: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's ``__getattr__`` and ``__dir__``: its public names and nothing else.

    A name is imported from the module that has it when it is first used; listing imports nothing.
    Listed is the package's ``__all__``. Type checkers and editors read the imports in a stub
    beside the module, or under ``TYPE_CHECKING``.
    ``package``: the package's ``__name__``; ``places``: for each module, by its name below the
    package or its whole name, the names that it has; ``packages``: packages below this one that
    are public themselves.
    """
    modules = {name: module for module, names in places.items() for name in names}

    def attribute(name: str) -> Any:
        if name in packages:
            return import_module(f"{package}.{name}")
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        place = modules[name]
        module = place if place.startswith("ldpaudit.") else f"{package}.{place}"
        return getattr(import_module(module), name)

    return attribute, lambda: sorted(sys.modules[package].__all__)
