"""Options that follow the column that they are about: ``--label a --epsilon 1 --label b …``."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from ldpaudit.cli.help import Command
from ldpaudit.errors import InputError
from ldpaudit.options import label_options, parse_label
from ldpaudit.options.labels import KEYS

_LABEL: Final = "--label"
_ABOUT: Final = ("--mechanism", *(f"--{key}" for key in KEYS))


class GroupedCommand(Command):
    """A command of which options between two ``--label`` are about the first of them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Fold them into its value, ``NAME:MECHANISM:KEY=VALUE:…``, and parse the rest."""
        return super().parse_args(ctx, grouped(args))


def grouped(words: Sequence[str]) -> list[str]:
    """Return the words with options folded into the ``--label`` that they follow.

    Where no such option stands between two of them, all of them are left as they are: they hold for
    each column that has none of its own.

    Raises
    ------
    InputError
        If some stand between, and others before the first; or one is stated twice of a column.
    """
    parts = list(_parts(words))
    labels = [place for place, (option, _) in enumerate(parts) if option == _LABEL]
    about = [place for place, (option, _) in enumerate(parts) if option in _ABOUT]
    if not any(labels[0] < place < labels[-1] for place in about if labels):
        return list(words)
    if about[0] < labels[0]:
        raise InputError(
            f"{parts[about[0]][0]} stands before the first --label, others after it: let each "
            "follow the --label that it is about."
        )
    folded: list[str] = []
    at = 0
    for option, given in parts:
        if option == _LABEL:
            folded += [_LABEL, given[-1]]
            at = len(folded) - 1
        elif option in _ABOUT:
            folded[at] = _with(folded[at], option.removeprefix("--"), given[-1])
        else:
            folded += given
    return folded


def _parts(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each of those options with its value last, and other words one by one."""
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if option != _LABEL and option not in _ABOUT:
            yield "", [word]
        elif equals:
            yield option, [value]
        else:
            following = next(rest, None)
            yield (option, [following]) if following is not None else ("", [word])


def _with(text: str, key: str, value: str) -> str:
    """Return the column's text with one more thing that is stated of it."""
    column = parse_label(text)
    field = "mechanism" if key == "mechanism" else KEYS[key][0]
    if getattr(column, field) is not None:
        raise InputError(f"--{key} is given twice for one column.")
    if key == "mechanism":
        return replace(column, mechanism=value).text()
    value_read = getattr(label_options(column.label, {key: value}), field)
    return replace(column, **{field: value_read}).text()
