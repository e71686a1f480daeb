"""Values, words and documents that no reader expects."""

import copy
import json
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

NUMBERS: Final = (
    *("0", "-0.0", "1", "-1", "0.5", "2", "7", "1e-308", "5e-324", "1e308", "-1e308", "1e400"),
    *(
        "nan",
        "inf",
        "-inf",
        "Infinity",
        "1e-17",
        "1e-6",
        "1e-7",
        "50",
        "50.1",
        "700",
        "710",
        "1000",
    ),
    *("0x10", "1_0", "١", "1,5", "1e", "--1", "", " ", "9" * 400, "9" * 5000, "0." + "1" * 5000),
    *("9007199254740993", "18446744073709551616", "-9223372036854775809", "1e5", "0.3", "1e-5"),
)
"""Numbers as people and hostile people write them."""
TEXTS: Final = (
    *(
        "",
        " ",
        "\t",
        "\n",
        "a",
        "a\nb,c",
        "a,b",
        'a"b',
        "'",
        "é",
        "\u202e",
        "\ufeff",
        "\x00x",
        "\x1b[",
    ),
    *("no", "yes", "true", "NaN", "null", "a" * 300, "=1+1", "<script>", "{{7*7}}", "../x", "C:\\"),
    *(
        "label",
        "epsilon",
        "rr",
        "laplace",
        "unknown",
        "claim + 5",
        "1",
        "01",
        "\ud7ff",
        "\U0001f600",
    ),
)
"""Names and cells."""
ODD: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 2, 10**17, 10**400, -(10**400), 0.5, -0.5, 1e-320, 1e308, 1e-17),
    *(float("nan"), float("inf"), [], {}, [[]], [{}], {"": {}}, [None], [1, "a"], {"name": None}),
    *(700.0, 50.0, 1e-6, "inf", "-inf", "nan", "rr", [0, 0], [1], [[1]], [0.5, 0.5], "a" * 3000),
)
"""Values of a document."""


def number(rng: random.Random) -> str:
    """Return a number, as text."""
    if rng.random() < 0.6:
        return rng.choice(NUMBERS)
    return repr(rng.choice((rng.uniform(0, 3), 10 ** rng.uniform(-30, 30), rng.randint(-9, 999))))


def text(rng: random.Random) -> str:
    """Return a text."""
    if rng.random() < 0.8:
        return rng.choice(TEXTS)
    return "".join(
        chr(rng.choice((rng.randint(1, 127), rng.randint(128, 0xD7FF)))) for _ in range(9)
    )


def deep(levels: int, rng: random.Random) -> Any:
    """Return lists and objects inside each other."""
    value: Any = 1
    for _ in range(levels):
        value = [value] if rng.random() < 0.5 else {"a": value}
    return value


def changed(value: Any, rng: random.Random, changes: int = 1) -> Any:
    """Return a copy of a document in which something is replaced, removed, added or repeated."""
    whole: list[Any] = [copy.deepcopy(value)]
    for _ in range(changes):
        places = _places(whole)
        if places:
            rng.choice(_CHANGES)(*rng.choice(places), rng)
    return whole[0] if whole else None


def _places(value: Any) -> list[tuple[Any, Any]]:
    found, left = [], [value]
    while left:
        one = left.pop()
        for key, part in one.items() if isinstance(one, dict) else enumerate(one):
            found.append((one, key))
            if isinstance(part, dict | list):
                left.append(part)
    return found


def _replace(holder: Any, key: Any, rng: random.Random) -> None:
    odd: tuple[Callable[[], Any], ...] = (
        lambda: copy.deepcopy(rng.choice(ODD)),
        lambda: text(rng),
        lambda: number(rng),
        lambda: 10 ** rng.uniform(-320, 308),
        lambda: deep(rng.choice((3, 60, 70, 200)), rng),
    )
    holder[key] = rng.choice(odd)()


def _remove(holder: Any, key: Any, rng: random.Random) -> None:
    del holder[key]


def _add(holder: Any, key: Any, rng: random.Random) -> None:
    if isinstance(holder, dict):
        holder[text(rng)] = copy.deepcopy(rng.choice(ODD))
    else:
        holder.insert(key, copy.deepcopy(rng.choice(ODD)))


def _repeat(holder: Any, key: Any, rng: random.Random) -> None:
    if isinstance(holder, list):
        holder.extend([copy.deepcopy(holder[key])] * rng.choice((1, 2, 50)))
    else:
        holder[f"{key} "] = copy.deepcopy(holder[key])


_CHANGES: Final = (_replace, _replace, _replace, _remove, _add, _repeat)


def broken(content: bytes, rng: random.Random) -> bytes:
    """Return bytes with some changed, cut out or repeated."""
    mine = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(mine) + 1)
        kind = rng.randrange(4)
        if kind == 0 and at < len(mine):
            mine[at] = rng.randrange(256)
        elif kind == 1:
            del mine[at : at + rng.choice((1, 5, 100))]
        elif kind == 2:
            mine[at:at] = rng.choice(SPLICES)
        else:
            mine[at:at] = mine[at : at + 40] * rng.choice((1, 2, 9))
    return bytes(mine)


SPLICES: Final = (
    *(b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"[" * 90, b"{" * 200, b'"', b"'", b"\n", b"\r", b";"),
    *(b"nan", b"1e999", b"9" * 500, b"a.b." * 40, b"#", b"\\", b"\t", b",,,,", b"1979-05-27", b"-"),
)


def document(value: Any) -> bytes:
    """Return a document as JSON."""
    return json.dumps(value).encode()


def toml(value: Any) -> str:
    """Return a document as TOML: keys with inline values."""
    if not isinstance(value, dict):
        return _inline(value)
    return "\n".join(f"{_key(key)} = {_inline(part)}" for key, part in value.items())


def _key(key: str) -> str:
    return json.dumps(key, ensure_ascii=True).replace("\\ud", "\\u0") if key else '""'


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return '""'
    return _key(value) if isinstance(value, str) else str(value)


def one_or_other(rng: random.Random, usual: Sequence[str], odd: str, often: float = 0.5) -> str:
    """Return a usual word, or an odd one."""
    return rng.choice(usual) if rng.random() < often else odd
