"""The options of a command as keywords of a Python function."""

import os
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields
from inspect import Parameter, Signature, cleandoc
from keyword import iskeyword
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin

from ldpaudit.errors import InputError, LdpAuditError, did_you_mean, quoted
from ldpaudit.options import Option, declared, group
from ldpaudit.options.declaring import retired
from ldpaudit.surfaces import speaking, spelt

T = TypeVar("T")
_UNIONS: Final = (Union, types.UnionType)
_MEMBERS: Final = {str: "a text, as '5'", type: "a class"}


def made(options: Callable[..., T], given: Mapping[str, Any], function: str) -> T:
    """Return the options that the keywords of a call state.

    A keyword is a field's name, or what the command line calls it (``seed``, ``id``,
    ``lambda_``); those of a group of options, such as the claim's ``epsilon``, are keywords, too.
    A single text stands for a collection of one, and for a path.
    ``given``: the keywords with their values; ``function``: what was called.
    """
    known = {name: place for field in fields(options) for name, place in _names(field)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    grouped: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        if name not in known:
            if line := retired(name):
                raise InputError(line)
            near = did_you_mean(name, known)
            raise InputError(f"{function}() has no option {quoted(name)}{near}")
        field, member = known[name]
        place = values if member is None else grouped.setdefault(field.name, {})
        key = member or field.name
        if key in place:
            raise InputError(f"{function}() was given {key!r} twice, once as {name!r}.")
        place[key] = _read(field, value) if member is None else value
    for field in fields(options):  # type: ignore[arg-type]
        if any(value is not None for value in grouped.get(field.name, {}).values()):
            values[field.name] = _together(field, grouped[field.name], values.get(field.name))
        if field.name not in values and field.default is MISSING and field.init:
            raise InputError(f"{function}() needs {field.name!r}.")
    return options(**values)


@contextmanager
def in_python(options: type) -> Iterator[None]:
    """Let the errors of a call name its keywords (``label=``), not options (``--label``)."""
    keywords = {
        name.rstrip("_").replace("_", "-"): member or field.name
        for one in fields(options)
        for name, (field, member) in _names(one)
    }
    try:
        with speaking("python"):
            yield
    except LdpAuditError as error:
        error.args = (spelt(str(error), "python", keywords),)
        raise


def _names(field: "Field[Any]") -> Iterator[tuple[str, tuple["Field[Any]", str | None]]]:
    """Yield the keywords of a field, each with the member of a group that it stands for."""
    if not field.init:
        return
    yield field.name, (field, None)
    option, members = declared(field.type), group(field.type)
    if isinstance(option, Option):
        yield _word(option, field.name), (field, None)
    for member in () if members is None else fields(members):
        inner = declared(member.type)
        if member.name != field.name and isinstance(inner, Option):
            yield member.name, (field, member.name)
            yield _word(inner, member.name), (field, member.name)


def _word(option: Option, field: str) -> str:
    """Return the name on the command line as a Python name."""
    word = option.long(field).removeprefix("--").replace("-", "_")
    return f"{word}_" if iskeyword(word) else word


def _together(field: "Field[Any]", members: dict[str, Any], value: Any) -> Any:
    """Return a field's value from the members of its group, and the value given for itself."""
    kind = group(field.type)
    assert kind is not None
    own = field.name in {member.name for member in fields(kind)}
    if value is not None and not (own and isinstance(value, str)):
        stated = ", ".join(sorted(members))
        raise InputError(f"{field.name!r} says it all already; leave out {stated}.")
    together = kind(**members | ({} if value is None else {field.name: value}))
    return together.value() if hasattr(together, "value") else together


def _read(field: "Field[Any]", value: Any) -> Any:
    """Return a value as the field has it: a text is read as on the command line."""
    annotation = next(iter(get_args(field.type)), Any)
    option, kinds = declared(field.type), set(_kinds(annotation))
    choices = _choices(annotation)
    if isinstance(value, str) and choices and value not in choices and str not in kinds:
        raise InputError(f"{field.name!r} must be {' or '.join(map(repr, choices))}.")
    value = _number(field.name, value, kinds - {types.NoneType})
    several = bool(kinds & {tuple, Collection, Sequence}) and str not in kinds
    if several and value is None and types.NoneType not in kinds:
        return ()
    if several and isinstance(value, str | type | list):
        value = tuple(value) if isinstance(value, list) else (value,)
    if several and value is not None and not getattr(option, "file", False):
        _check_members(field.name, value, annotation)
    beside = {str, types.NoneType} == kinds and getattr(option, "file", False)
    path = beside or (Path in kinds and kinds <= {Path, str, types.NoneType})
    if path and not isinstance(value, str | os.PathLike | None):
        raise InputError(f"{field.name!r} must be a path. Got {type(value).__name__} instead.")
    if isinstance(value, str) and Path in kinds and str not in kinds:
        return Path(value)
    read = option.read if isinstance(option, Option) else None
    texts = isinstance(value, str) or (several and isinstance(value, tuple))
    return read(value) if read and texts else value


def _number(name: str, value: Any, kinds: Collection[Any]) -> Any:
    """Return a value, Python's own where a field takes numbers, or yes and no, alone."""
    yes_or_no = type(value).__name__ in ("bool", "bool_")
    if value is None or not kinds or not {bool, int, float}.issuperset(kinds):
        return value
    if set(kinds) == {bool} and not yes_or_no:
        raise InputError(f"{name!r} must be True or False. Got {type(value).__name__}.")
    number = Real if float in kinds else Integral
    if bool not in kinds and (yes_or_no or not isinstance(value, number)):
        raise InputError(f"{name!r} must be a number. Got {type(value).__name__}.")
    return value.item() if hasattr(value, "item") else value


def _kinds(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) in _UNIONS:
        for part in get_args(annotation):
            yield from _kinds(part)
    else:
        yield get_origin(annotation) or annotation


def _check_members(name: str, value: Any, annotation: Any) -> None:
    """Refuse members of other types than a collection of texts, or classes, has (InputError)."""
    if get_origin(annotation) in _UNIONS:
        annotation = next(part for part in get_args(annotation) if get_args(part))
    kinds = set(_kinds(next(iter(get_args(annotation)), Any)))
    members = value if isinstance(value, Collection) else (value,)
    wrong = [one for one in members if not isinstance(one, str | type)]
    if wrong and kinds <= _MEMBERS.keys():
        one = " or ".join(word for kind, word in _MEMBERS.items() if kind in kinds)
        raise InputError(
            f"{name!r} must be {one}, or a list of such. Got {type(wrong[0]).__name__} instead."
        )


def _choices(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    parts = get_args(annotation) if get_origin(annotation) in _UNIONS else ()
    return tuple(choice for part in parts for choice in _choices(part))


def documented(
    function: Callable[..., Any],
    options: type,
    first: Collection[str],
    positional: Collection[str] = (),
) -> None:
    """Let a function of keywords show them: in its signature, for completion, and in ``help()``.

    ``function``: its docstring describes its own parameters; those of the options follow them.
    ``options``: its docstring describes its fields. ``first``: the function's own parameters;
    fields of these names are no keywords. ``positional``: fields that may be given by position.
    """
    own = Signature.from_callable(function)
    listed = [own.parameters[name] for name in first]
    named = {name: place for field in fields(options) for name, place in _names(field)}
    by_place = [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, default=None) for n in positional]
    for name, (field, member) in named.items():
        if name not in {*first, *positional} and (member or name == field.name):
            stated = Parameter.empty if field.default is MISSING else field.default
            default = stated if member is None else None
            listed.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default))
    shown = own.replace(parameters=[*listed[: len(first)], *by_place, *listed[len(first) :]])
    function.__signature__ = shown  # type: ignore[attr-defined]
    described = cleandoc(options.__doc__ or "").partition("----------\n")[2]
    before, returns, after = cleandoc(function.__doc__ or "").partition("\n\nReturns")
    function.__doc__ = f"{before}\n{described}{returns}{after}"
