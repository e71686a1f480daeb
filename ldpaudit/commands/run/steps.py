"""The commands of a result's steps, as they are typed after an audit of these very files."""

# A stored result holds placeholders (RELEASE, TRUTH, POLICY), for it repeats no path. Whoever sees
# the files' names anyway is shown a line to copy: with the names that were typed, and with the
# options by which they were read, of which each command is given those that it takes.

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, fields
from inspect import signature
from typing import Final

from ldpaudit.commands.registered import registered
from ldpaudit.commands.requests import DeclareRequest, RunRequest
from ldpaudit.options import FileOptions, LabelOptions, group, named_columns, option_name

_PROGRAM: Final = "ldpaudit "
# What says which columns and rows are meant, and how files are read.
_CARRIED: Final = ("label", "id_column", *(field.name for field in fields(FileOptions)))


@dataclass(frozen=True)
class TypedSteps:
    """The steps of the result of a request."""

    request: RunRequest

    def step(self, text: str) -> str:
        """Return a step with its command as it is typed."""
        before, program, rest = text.partition(_PROGRAM)
        command, *words = rest.split(" ")
        typed = self._typed(command) if program else {}
        return before + program + " ".join([command, *(typed.get(word, word) for word in words)])

    def _typed(self, command: str) -> dict[str, str]:
        """Return what is typed for the placeholders of a command."""
        request = self.request
        carried = {name: words for name in _CARRIED if (words := [*self._words(name)])}
        # A command is loaded only where there is an option that it might take.
        taken = _taken(command) if carried else ()
        options = [word for name, words in carried.items() if name in taken for word in words]
        # Of several releases a step is about one, so which one is left open.
        one = request.release if len(request.release) == 1 else ("RELEASE",)
        named = {"TRUTH": request.truth, "POLICY": request.policy}
        given = {word: shlex.quote(str(v)) for word, v in named.items() if v is not None}
        if isinstance(request.truth, tuple):
            del given["TRUTH"]
        return {"RELEASE": shlex.join([*one, *options]), **given}

    def _words(self, name: str) -> Iterator[str]:
        """Yield an option as it was given; nothing where it was not."""
        value, option = getattr(self.request, name), option_name(self.request, name)
        if name == "label":
            value = [LabelOptions(label=one.label).text() for one in named_columns(self.request)]
        if value is True:
            yield option
            return
        given = [value] if isinstance(value, str) else value or ()
        for one in given:
            yield from (option, "tab" if one == "\t" else one)


def _taken(command: str) -> set[str]:
    """Return the options that a command takes."""
    requests = [DeclareRequest] if command == "declare" else []
    if command in registered():
        parameters = signature(registered()[command].function).parameters.values()
        requests = [made for one in parameters if (made := group(one.annotation)) is not None]
    return {field.name for request in requests for field in fields(request)}
