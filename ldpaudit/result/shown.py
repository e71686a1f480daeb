"""What every call returns that finds something: a sentence, a page, JSON, a frame and pictures."""

from abc import abstractmethod
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from ldpaudit.surfaces import spelt

if TYPE_CHECKING:
    import pandas as pd


class Shown:
    """The methods that results share; what they show is of the result alone."""

    # ``_sentence``: the answer; ``_html``: its page; ``_json``: its stored form; ``_figures``: its
    # pictures by name; ``_private``: whether files of it are readable by their owner alone.

    @property
    @abstractmethod
    def _sentence(self) -> str: ...

    @property
    def _private(self) -> bool:
        return True

    @abstractmethod
    def _html(self) -> str: ...

    @abstractmethod
    def _json(self) -> str: ...

    def _figures(self) -> dict[str, Any]:
        return {}

    @abstractmethod
    def to_frame(self) -> "pd.DataFrame":
        """Return its numbers as a data frame."""

    def __str__(self) -> str:
        return spelt(self._sentence)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    @overload
    def to_html(self, path: None = None) -> str: ...
    @overload
    def to_html(self, path: Path | str) -> None: ...
    def to_html(self, path: Path | str | None = None) -> str | None:
        """Return the page as HTML; with a ``path`` write it there, whole or not at all."""
        return written(self._html(), path, private=self._private)

    @overload
    def to_json(self, path: None = None) -> str: ...
    @overload
    def to_json(self, path: Path | str) -> None: ...
    def to_json(self, path: Path | str | None = None) -> str | None:
        """Return the result as JSON; with a ``path`` write it there, whole or not at all."""
        return written(self._json(), path, private=self._private)

    def plot(self, what: str | None = None) -> Any:
        """Return one picture of the page, which a notebook shows and ``save(path)`` writes.

        Parameters
        ----------
        what : str, optional
            Its name; default: the first one.

        Raises
        ------
        ldpaudit.errors.InputError
            If there is no such picture; the message names those that there are.
        """
        plots = import_module("ldpaudit.reports.plots")
        return plots.one_of(self._figures(), what, private=self._private)

    def _repr_html_(self) -> str:
        html: str = import_module("ldpaudit.reports.html").short(str(self), [*self._figures()])
        return html


def written(text: str, path: Path | str | None, *, private: bool) -> str | None:
    """Return a text; with a path write it there, and return nothing."""
    if path is None:
        return text
    from ldpaudit.work.files import write_whole

    write_whole(Path(path), text, private=private)
    return None
