"""Where a comparison goes: checked before any work, written whole or not at all."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ldpaudit.comparison import Comparison
from ldpaudit.errors import OutputError
from ldpaudit.reports import write_all

_SUFFIXES = (".gz", ".parquet", ".pq", ".csv", ".tsv", ".json")


@dataclass(frozen=True)
class Outputs:
    """Where the result and the page go."""

    html: Path | None
    json: Path | None

    @classmethod
    def of(cls, first: str, html: Path | None, json: Path | None) -> "Outputs":
        """Return the places asked for, else two files beside the first input (a URL's: here)."""
        if html is not None or json is not None:
            return cls(html, json)
        local = "://" not in first and not any(mark in first for mark in "*?[")
        folder = Path(first).parent if local else Path()
        stem = first.rstrip("/").rsplit("/", 1)[-1]
        for suffix in _SUFFIXES:
            stem = stem.removesuffix(suffix)
        stem = "".join(letter for letter in stem if letter not in "*?[]") or "release"
        return cls(folder / f"{stem}.comparison.html", folder / f"{stem}.comparison.json")

    def given(self) -> tuple[Path, ...]:
        """Return the paths that are written to."""
        return tuple(path for path in (self.html, self.json) if path is not None)

    def check(self, inputs: Sequence[Path | str]) -> None:
        """Refuse places that cannot be written to, and places of inputs.

        Raises
        ------
        OutputError
            With what is wrong with which file.
        """
        places = [path.resolve() for path in self.given()]
        if len(set(places)) < len(places):
            raise OutputError("The page and the result must be two files.")
        read = {Path(path).resolve() for path in inputs}
        for place in places:
            if place in read:
                raise OutputError(f"{place.name} is an input of the comparison; not overwritten.")
            if place.is_dir():
                raise OutputError(f"{place.name} is a folder; give a file name.")
            if not place.parent.is_dir():
                raise OutputError(f"The folder for {place.name} does not exist.")
            if not os.access(place.parent, os.W_OK):
                raise OutputError(f"The folder for {place.name} cannot be written to.")

    def write(self, comparison: Comparison) -> None:
        """Write what is asked for; the page is made only where it is."""
        from ldpaudit.reports.pages.comparison import comparison_json, render_comparison

        texts = {} if self.json is None else {self.json: comparison_json(comparison)}
        if self.html is not None:
            texts[self.html] = render_comparison(comparison)
        write_all(texts)
