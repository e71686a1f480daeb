"""Where results go: checked before any work, written whole or not at all."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldpaudit.errors import OutputError
from ldpaudit.reports import write_all
from ldpaudit.reports.json_report import as_json
from ldpaudit.terminal import say


@dataclass(frozen=True)
class Outputs:
    """Where the result and the page go.

    Parameters
    ----------
    json, html : Path or None
    """

    json: Path | None = None
    html: Path | None = None

    def given(self) -> tuple[Path, ...]:
        """Return the paths that are asked for."""
        return tuple(path for path in (self.json, self.html) if path is not None)

    def check(self, inputs: Sequence[Path | str | None] = ()) -> None:
        """Refuse places that cannot be written to, and places of inputs.

        Raises
        ------
        OutputError
            With what is wrong with which file.
        """
        places = [path.resolve() for path in self.given()]
        if len(set(places)) < len(places):
            raise OutputError("The result and the page must be two files.")
        read = {Path(path).resolve() for path in inputs if path is not None}
        for place in places:
            if place in read:
                raise OutputError(f"{place.name} is an input and is not overwritten.")
            if place.is_dir():
                raise OutputError(f"{place.name} is a folder; give a file name.")
            if not place.parent.is_dir():
                raise OutputError(f"The folder for {place.name} does not exist.")
            if not os.access(place.parent, os.W_OK):
                raise OutputError(f"The folder for {place.name} cannot be written to.")

    def write(self, result: dict[str, Any], page: Callable[[], str]) -> None:
        """Write what is asked for; the page is made only where it is."""
        texts = {} if self.json is None else {self.json: as_json(result)}
        if self.html is not None:
            texts[self.html] = page()
        write_all(texts)
        for path in self.given():
            say(f"Wrote {path}.")
