"""A command's options as the fields of a form, and a filled form as the words of the command."""

# The options are those that the command line has (``ldpaudit.cli.parameters``), each with its name,
# its help and its type; what they mean is checked by the command alone.

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin

from ldpaudit.doors import Argument
from ldpaudit.extras.web.drafts import Draft
from ldpaudit.options import LabelOptions
from ldpaudit.surfaces import OPTIONS, options_in, spelt

FieldKind = Literal["files", "flag", "choice", "number", "lines", "text"]
_LEFT_OUT: Final = frozenset(
    (
        *("json", "html", "sarif", "junit", "markdown", "formats", "registry"),
        *("quiet", "debug", "details", "profile"),
        *("inconclusive", "not_yet", "exit_zero", "memory", "cluster", "cluster_without_tls"),
        "schema",
        "attacks",  # Code of the server's disk.
    )
)
"""Options of outputs, exit statuses and the machine, which the page itself decides."""
PRESETS: Final = ("ldpaudit:default", "ldpaudit:strict", "ldpaudit:research")
_THOUSANDS: Final = re.compile(
    r"[+-]?\d{1,3}(?P<mark>[.,'\u2019\u00a0\u202f ])\d{3}(?:(?P=mark)\d{3})*"
)


Commands = Mapping[str, Sequence[Any]]
"""The commands that pages may run, with their options as ``ldpaudit.cli.parameters`` has them."""


class Field(NamedTuple):
    """An option in a form; ``main``: its files are what the command is about."""

    name: str
    long: str
    title: str
    help: str
    kind: FieldKind
    choices: tuple[str, ...]
    default: str
    main: bool
    whole: bool

    def words(self, draft: Draft) -> list[str]:
        """Return what the form says of this option, as words of a command."""
        values = [text for text in draft.values.get(self.name, []) if text]
        if self.kind == "files":
            preset = [text for text in values if self.name == "policy" and text in PRESETS]
            files = draft.words(self.name) or preset
            return files if self.main else [f"{self.long}={file}" for file in files]
        if self.kind == "flag":
            return [self.long] if values else []
        if self.name == "label":
            # Those that the command takes by itself need no word.
            own = values == proposed(draft)
            values = [] if own else [LabelOptions(label=name).text() for name in values]
        elif self.kind == "lines":
            values = [line.strip() for text in values for line in text.splitlines()]
        elif self.kind == "number":
            values = [plain_number(text, whole=self.whole) for text in values]
        return [f"{self.long}={text}" for text in values if text.strip() and text != self.default]


def proposed(draft: Draft) -> list[str]:
    """Return the private columns that a command takes by itself: those declared, or ``label``."""
    for seen in (draft.found or {}).values():
        columns = [name for name, _ in seen["columns"] if name == "label"]
        return [name for name, _ in seen["declared"]] or columns
    return []


def fields_of(parameters: Iterable[Any]) -> dict[str, Field]:
    """Return the fields of a command by their names; what names a file is uploaded, not typed."""
    fields = {}
    for one in parameters:
        kind, option = one.type, one.declared
        choices = get_args(kind) if get_origin(kind) is Literal else ()
        sorts: dict[FieldKind, Any] = {
            "files": option.file or kind is Path,
            "flag": one.flag,
            "choice": choices,
            "number": kind in (int, float),
            "lines": one.repeatable,
            "text": True,
        }
        sort = next(name for name, true in sorts.items() if true)
        default = str(one.default) if isinstance(one.default, str | float | int) else ""
        rest = (choices, default, isinstance(option, Argument), kind is int)
        if one.name.strip("_") not in _LEFT_OUT:
            word = one.long.removeprefix("--")
            title = OPTIONS[word].title if word in OPTIONS else ""
            help = option.help.replace("repeatable", "one a line")
            fields[one.name] = Field(one.name, one.long, title, spelt(help, "page"), sort, *rest)
    return fields


def words_of(fields: Mapping[str, Field], draft: Draft) -> list[str]:
    """Return a filled form as the words of its command: files first, then options."""
    ordered = sorted(fields.values(), key=lambda one: not one.main)
    return [word for one in ordered for word in one.words(draft)]


def plain_number(text: str, *, whole: bool = False) -> str:
    """Return a number as the command line reads it, from the English or the German form."""
    # The last of two different marks is the decimal one. A single mark is one too, but for whole
    # numbers, where it separates thousands; anything else is left for the command to refuse.
    text = text.strip()
    marks = re.findall(r"[.,]", text)
    if whole and _THOUSANDS.fullmatch(text):
        return re.sub(r"[^\d+-]", "", text)
    if len({*marks}) == 2 and _THOUSANDS.fullmatch(text.rpartition(marks[-1])[0]):
        before, _, after = text.rpartition(marks[-1])
        return f"{re.sub(r'[^0-9+-]', '', before)}.{after}"
    return text.replace(",", ".") if marks == [","] else text


def field_of(message: str, fields: Mapping[str, Field], draft: Draft) -> str:
    """Return the field that a refusal is about: whose file or option it names first, or none."""
    named = [
        (message.find("The true labels"), "truth" if "truth" in fields else ""),
        *((message.find(f"'{n}'"), role) for role in draft.files for n in draft.names(role)),
    ]
    options = options_in(message)
    for one in fields.values():
        word = one.long.removeprefix("--")
        quoted = re.escape(word).replace(r"\-", "[-_ ]")
        found = re.search(rf"['\"]{quoted}(?![\w-])", message, re.IGNORECASE)
        named.append((found.start() if found else -1, one.name))
        named.append((message.find(one.long) if word in options else -1, one.name))
    return min((one for one in named if one[0] >= 0), default=(0, ""))[1]
