"""One private column as the options state it: ``NAME:MECHANISM:KEY=VALUE:…``."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal

from ldpaudit.errors import InputError, decimal_point, did_you_mean, quoted


@dataclass(frozen=True, kw_only=True)
class LabelOptions:
    """What is stated about one private column; None where nothing is."""

    label: str
    """The column."""
    mechanism: str | None = None
    """Its name as it was typed, unchecked: full or short."""
    epsilon: float | None = None
    """ε in nats."""
    noise: float | None = None
    """λ."""
    classes: str | tuple[Any, ...] | None = None
    """``A,B,…``, or the labels one by one."""
    unperturbed: str | tuple[Any, ...] | None = None
    """Labels that stay as they are, given like ``classes``."""
    labels: str | None = None
    """The range of numbers, ``LO:HI`` or ``LO:HI:STEP``."""
    prior: Path | None = None
    private_prior: float | Literal["auto"] | None = None
    """ε₁ in nats."""
    loss: Literal["squared", "absolute", "poisson"] | None = None
    round: Literal["unbiased", "nearest"] | None = None
    clipped: bool | None = None
    channel: Path | None = None
    """A channel as CSV."""
    by: str | None = None
    """A public column: rows with different values of it have channels of their own."""
    strata: "Mapping[str, LabelOptions]" = field(default_factory=dict)
    """From the values of ``by``, as text, to what is stated of their channels; only a plan does."""

    def stated(self) -> dict[str, Any]:
        """Return what is stated besides the column and its strata, by the fields' names."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {k: v for k, v in values.items() if k not in ("label", "strata") and v is not None}

    def text(self) -> str:
        """Return it as :func:`parse_label` reads it, to be quoted for a shell."""
        stated = self.stated()
        mechanism = stated.pop("mechanism", None)
        words = {field: key for key, (field, _) in KEYS.items()}
        parts = [f"{words[field]}={_written(value)}" for field, value in stated.items()]
        return ":".join([_name(self.label), *([mechanism] if mechanism else []), *parts])


def parse_label(text: str) -> LabelOptions:
    """Read ``NAME``, ``NAME:MECHANISM:KEY=VALUE:…`` or ``NAME:KEY=VALUE:…``."""
    # A value may hold colons (``labels=0:100:5``): a new key begins where a word and = follow one.
    # A name that holds a colon or begins with a quotation mark stands in double quotes, those
    # inside twice.
    name, rest = _split_name(text)
    if rest is None:
        return LabelOptions(label=name)
    first, *others = rest.split(":")
    if not _is_setting(first):
        if not first:
            raise InputError(
                f"After {quoted(name + ':')} the mechanism must follow: NAME:MECHANISM:epsilon=1. "
                "A name that holds a colon itself is written in double quotes: '\"a:b\"'."
            )
        if re.search("[,=]", first):
            raise InputError(
                f"After a mechanism's name its settings follow, each after a colon: "
                f"MECHANISM:epsilon=1. Got {quoted(first)}."
            )
        return label_options(name, _settings(others), mechanism=first)
    return label_options(name, _settings([first, *others]))


def label_options(
    label: str, settings: Mapping[str, Any], mechanism: str | None = None
) -> LabelOptions:
    """Return the options of a column from values by their keys: texts, or as a plan has them."""
    values: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in KEYS:
            known = f"; known are {', '.join(KEYS)}."
            raise InputError(
                f"The column {quoted(label)} has an unknown key {quoted(key)}"
                f"{did_you_mean(key, KEYS, known)}"
            )
        field, read = KEYS[key]
        try:
            values[field] = read(value)
        except ValueError as error:
            raise InputError(f"The column {quoted(label)}: {key} {error}") from None
    return LabelOptions(label=label, mechanism=mechanism, **values)


def check_distinct(labels: Iterable[str]) -> tuple[str, ...]:
    """Return the private columns; refuse one that is named twice (InputError)."""
    named = tuple(labels)
    twice = next((name for place, name in enumerate(named) if name in named[:place]), None)
    if twice is not None:
        raise InputError(f"The column {quoted(twice)} is named twice as a private column.")
    return named


def _split_name(text: str) -> tuple[str, str | None]:
    """Return the column's name, and what follows its colon; None where nothing does."""
    if not text.startswith('"'):
        name, colon, rest = text.partition(":")
    else:
        found = re.fullmatch(r'"((?:[^"]|"")*)"(?:(:)(.*))?', text, re.DOTALL)
        if found is None:
            raise InputError(
                "A column's name that begins with a double quote must end with one, before the "
                "first colon: '\"a:b\":MECHANISM:epsilon=1'."
            )
        name, colon, rest = found[1].replace('""', '"'), found[2] or "", found[3] or ""
    if not name:
        raise InputError("A private column must have a name: NAME:MECHANISM:epsilon=1.")
    return name, rest if colon else None


def _is_setting(part: str) -> bool:
    return part in _FLAGS or re.match(r"[A-Za-z][\w-]*=", part) is not None


def _settings(parts: list[str]) -> dict[str, str]:
    """Return the values by their keys; a part that begins no key goes on with the value before."""
    settings: dict[str, str] = {}
    key = None
    for part in parts:
        if _is_setting(part):
            key, _, value = part.partition("=")
            if key in settings:
                raise InputError(f"The key {quoted(key)} is stated twice.")
            settings[key] = value if "=" in part else "yes"
        elif key is None:
            raise InputError(
                f"After the mechanism KEY=VALUE must follow, such as epsilon=1. Got {quoted(part)}."
            )
        else:
            settings[key] += f":{part}"
    empty = next((key for key, value in settings.items() if not value), None)
    if empty is not None:
        raise InputError(f"The key {quoted(empty)} must have a value: {empty}=VALUE.")
    return settings


def _name(label: str) -> str:
    if ":" in label or label.startswith('"'):
        return '"' + label.replace('"', '""') + '"'
    return label


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_cell, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def _cell(value: Any) -> str:
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if re.search('[,"]', text) else text


def _number(value: Any) -> float:
    try:
        return float("" if isinstance(value, bool) else value)
    except (TypeError, ValueError, OverflowError):
        end = decimal_point(str(value))
        raise ValueError(f"must be a number. Got {quoted(str(value))}{end}") from None


def _amount(value: Any) -> "float | Literal['auto']":
    return "auto" if value == "auto" else _number(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text.")
    return value


def _path(value: Any) -> Path:
    return value if isinstance(value, Path) else Path(_text(value))


def _flag(value: Any) -> bool:
    known = {"yes": True, "true": True, "no": False, "false": False, True: True, False: False}
    if not isinstance(value, str | int) or value not in known:
        raise ValueError(f"must be yes or no. Got {quoted(str(value))}.")
    return known[value]


def _range(value: Any) -> str:
    """Return ``LO:HI[:STEP]``, which a plan may also state as a list of numbers."""
    if isinstance(value, list | tuple):
        return ":".join(_written(_number(part)) for part in value)
    return _text(value)


def _classes(value: Any) -> str | tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else _text(value)


def _one_of(*choices: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}. Got {quoted(str(value))}.")
        return str(value)

    return read


# What can be stated of a column: each key, with its field and what reads its value.
KEYS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "epsilon": ("epsilon", _number),
    "lambda": ("noise", _number),
    "classes": ("classes", _classes),
    "unperturbed": ("unperturbed", _classes),
    "labels": ("labels", _range),
    "prior": ("prior", _path),
    "private-prior": ("private_prior", _amount),
    "loss": ("loss", _one_of("squared", "absolute", "poisson")),
    "round": ("round", _one_of("unbiased", "nearest")),
    "clip": ("clipped", _flag),
    "channel": ("channel", _path),
    "by": ("by", _text),
}
_FLAGS: Final = ("clip",)
