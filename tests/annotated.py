"""Whether a value is what the annotation of an option says that Python callers may give."""

import re
import types
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any, ForwardRef, Literal, Union, get_args, get_origin

import numpy as np
from typing_extensions import get_protocol_members, is_protocol

PLACES = {
    "os": ("os",),
    "pathlib": ("Path",),
    "numpy": ("np",),
    "numpy.typing": ("npt",),
    "pandas": ("pd",),
    "pyarrow": ("pa",),
    "distributed": ("Client",),
    "ldpaudit.judging.policy": ("Policy",),
    "ldpaudit.mechanisms.interface": ("Mechanism",),
    "ldpaudit.options": ("ClaimOptions", "LabelOptions"),
    "ldpaudit.release.declaration": ("Label",),
    "ldpaudit.release": ("Declaration",),
}
"""Where the names of annotations that are texts come from."""


@cache
def resolved(text):
    """Return what the text of an annotation stands for."""
    names = {"Any": Any, "Mapping": Mapping, "Sequence": Sequence, "object": object}
    for module, names_of_module in PLACES.items():
        if any(name in text for name in names_of_module):
            loaded = import_module(module)
            names |= {n: getattr(loaded, n, loaded) for n in names_of_module}
    # Pandas and its stubs differ in what may stand in brackets.
    return eval(re.sub(r"(Series|NDArray)\[.*?\]", r"\1", text), names)


def believed(value, annotation):
    """Return whether a value is of an annotated type; NumPy's numbers count as Python's."""
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        annotation = resolved(annotation)
    if isinstance(value, np.generic) and value.ndim == 0:
        value = value.item()
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return True
    if annotation in (None, types.NoneType):
        return value is None
    if origin is Annotated:
        return believed(value, parts[0])
    if origin in (Union, types.UnionType):
        return any(believed(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if annotation is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if annotation is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin is tuple:
        return isinstance(value, tuple) and all(believed(one, parts[0]) for one in value)
    if origin in (Collection, Sequence):
        members = isinstance(value, origin)
        return members and all(isinstance(one, str) or believed(one, parts[0]) for one in value)
    kind = origin or annotation
    if is_protocol(kind):
        return all(hasattr(value, name) for name in get_protocol_members(kind))
    return isinstance(value, kind)
