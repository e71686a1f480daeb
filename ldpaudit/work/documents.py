"""JSON and TOML: what others wrote, within limits on size and nesting, and JSON as we write it."""

import errno
import json
import math
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from ldpaudit.errors import InputError, decimal_point
from ldpaudit.work.limits import DIGITS, DOCUMENT_BYTES, DOCUMENT_VALUES, NESTING, POLICY_BYTES

Form = TypeVar("Form")
_PART: Final = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
# A TOML key of more parts than there may be tables inside each other.
_LONG_KEY: Final = re.compile(rf"(?<![\w\"'.-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{NESTING}}}")


def as_json(value: Any) -> str:
    """Return any part of a result as JSON."""
    return json.dumps(_writable(value), sort_keys=True, indent=2, allow_nan=False) + "\n"


def _writable(value: Any) -> Any:
    """Return ``value`` with each infinity as a string and each key of a mapping as one."""
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {str(key): _writable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        # Long lists are of numbers, and finite: these are not looked at one by one.
        if set(map(type, value)) == {float} and not any(map(math.isinf, value)):
            return value
        return [_writable(item) for item in value]
    return value


def read_document(path: Path, most: int) -> str:
    """Return a file's text, a byte more than ``most`` of it where it is longer."""
    check_regular(path)
    with path.open("rb") as file:
        content = file.read(most + 1)
    # What is cut off may end within a letter; it is too long, whatever it says.
    return content.decode("utf-8-sig", "strict" if len(content) <= most else "replace")


def check_regular(path: Path) -> None:
    """Refuse what is neither a file nor a folder, before it is opened: a pipe may never answer."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "it is a pipe or a device; save what it gives as a file")


def why_unreadable(error: Exception) -> str:
    """Return why a document cannot be read, in words."""
    if isinstance(error, UnicodeError):
        return "it is not a text file in UTF-8"
    if isinstance(error, IsADirectoryError):
        return "it is a folder"
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    invalid = isinstance(error, OSError) and error.errno == errno.EINVAL and error.strerror
    return str(invalid or "access is denied")


def parse_json(content: bytes | str, what: str, invalid: str, *, distinct: bool = False) -> Any:
    """Parse a JSON document; its numbers are finite, its texts can be written as UTF-8.

    ``what``: what it is; begins the message about a limit. ``invalid``: the whole message where
    it is no JSON. ``distinct``: whether an object with a field twice is refused.
    """
    _check_size(len(content), DOCUMENT_BYTES, what)
    try:
        value = json.loads(
            content,
            parse_int=_whole,
            parse_float=_finite,
            parse_constant=_finite,
            object_pairs_hook=_distinct if distinct else None,
        )
    except RecursionError:
        raise _too_deep(what) from None
    except ValueError:
        raise InputError(invalid) from None
    _check_values(value, what)
    return value


def stored(form: Callable[[Any], Form], content: bytes | str, what: str, invalid: str) -> Form:
    """Parse a JSON document that has a form: a stored result, say."""
    value = parse_json(content, what, invalid)
    try:
        return form(value)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
        # Parts are looked at before they are known to be of their type.
        raise InputError(invalid) from None


def parse_toml(text: str, what: str) -> dict[str, Any]:
    """Parse a TOML document."""
    _check_size(len(text.encode("utf-8", "surrogatepass")), POLICY_BYTES, what)
    if _LONG_KEY.search(text):
        raise _too_deep(what)
    if re.search(rf"[0-9A-Fa-f_]{{{DIGITS + 1}}}", text):
        raise InputError(f"{what} must have no number of more than {DIGITS} digits.")
    try:
        value = tomllib.loads(text)
    except RecursionError:
        raise _too_deep(what) from None
    except ValueError as error:
        raise ValueError(_with_number_meant(str(error), text)) from None
    _check_values(value, what)
    return value


def _with_number_meant(words: str, text: str) -> str:
    """Return what is wrong with a TOML document, and what its decimal comma stands for."""
    found = re.search(r" \(at line (\d+), column \d+\)", words)
    line = text.split("\n")[int(found[1]) - 1] if found else ""
    comma = re.search(r"=\s*-?\d+,\d+\s*(#.*)?$", line)
    if found is None or comma is None:
        return words
    return f"{words[: found.start()]}{decimal_point(comma[0]).removesuffix('.')}{found[0]}"


def _check_size(size: int, most: int, what: str) -> None:
    if size > most:
        unit, name = (1 << 20, "MiB") if most >= 1 << 20 else (1 << 10, "KiB")
        raise InputError(f"{what} must have at most {most // unit} {name}.")


def _check_values(value: Any, what: str) -> None:
    """Refuse too many values, and too many lists and objects inside each other."""
    level, depth, count = [value], 0, 0
    while level := [one for one in level if isinstance(one, dict | list)]:
        depth, count = depth + 1, count + sum(map(len, level))
        if depth > NESTING:
            raise _too_deep(what)
        if count > DOCUMENT_VALUES:
            raise InputError(f"{what} must hold at most {DOCUMENT_VALUES:,} values.")
        level = [part for one in level for part in (one.values() if isinstance(one, dict) else one)]


def _too_deep(what: str) -> InputError:
    return InputError(f"{what} must have at most {NESTING} lists and tables inside each other.")


def _whole(text: str) -> int:
    if len(text) > DIGITS:
        raise ValueError("A number has too many digits.")
    return int(text)


def _finite(text: str) -> float:
    number = float(text) if len(text) <= DIGITS else math.inf
    if not math.isfinite(number):
        raise ValueError("A number is not finite.")
    return number


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("A field occurs twice.")
    return value
