"""What every conditional feature generator offers, at the level of tables."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
import pyarrow as pa

from ldpaudit.device import DeviceName
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.release import IntArray
from ldpaudit.work.progress import NoProgress, Progress

# The version of the generators: it changes whenever the same seed gives other rows.
VERSION: Final = 3

# A class with fewer rows cannot be learnt.
MIN_CLASS_ROWS: Final = 20
# The names that no generator of another package may have.
BUILT_IN: Final = frozenset(("gan", "mixture"))

# Whose rows a generator was fitted on; the guarantee of double randomized response assumes public
# rows, or a generator with a privacy budget of its own.
TrainedOn = Literal["public", "private"]


class Generator(ABC):
    """Draws feature rows given a label: P̂(x | y).

    A subclass states ``name`` and writes :meth:`_learn`, :meth:`sample`, :meth:`state` and
    :meth:`from_state`; a package registers it in the group ``ldpaudit.generators``. ``privatize``
    and ``sweep`` build it with ``trained_on`` alone, so other parameters need defaults.

    Parameters
    ----------
    trained_on : {"public", "private"}
        Whose rows it is fitted on; the guarantee of double randomized response assumes public rows,
        or a generator with a privacy budget of its own.

    Attributes
    ----------
    name : str
        The name in the declaration, such as ``"gan"``; that of the entry point.
    trained_on : {"public", "private"}
        Whose rows it is fitted on.
    warnings : tuple of str
        What the user should know about the fit, one sentence each; empty before fitting.

    References
    ----------
    Busa-Fekete et al. (2023), Label differential privacy and private training data release,
    Mechanism 2.
    """

    name: ClassVar[str]

    def __init__(self, trained_on: TrainedOn) -> None:
        self.trained_on = trained_on
        self.warnings: tuple[str, ...] = ()
        self._seed: int | None = None
        self._rows = 0

    def fit(
        self,
        table: pa.Table,
        labels: IntArray,
        classes: int,
        *,
        rng: np.random.Generator,
        progress: Progress | None = None,
        device: DeviceName = "auto",
    ) -> Self:
        """Learn the features of each class.

        The same ``rng`` gives the same generator on one machine, unless the time ran out.

        Parameters
        ----------
        table : pyarrow.Table
            Feature columns only, n rows.
        labels : int32 array of shape (n,)
            Class codes, 0 … k − 1.
        classes : int
            k, at least 2; every class must have rows.
        rng : numpy.random.Generator
            The source of all randomness.
        progress : Progress, optional
            Who hears how far it is; default: nobody.
        device : {"auto", "cpu", "cuda"}
            Where networks are trained; ``"auto"`` takes a GPU where torch sees one.

        Returns
        -------
        self

        Raises
        ------
        ldpaudit.errors.InputError
            If a column's type cannot be generated, or the labels do not fit the table.
        ldpaudit.errors.InsufficientDataError
            If a class has too few rows to learn from.
        ldpaudit.errors.GeneratorDivergedError
            If training failed; nothing is kept then.
        """
        codes = check_training_set(table, labels, classes)
        self._rows = table.num_rows
        self._learn(table, codes, classes, rng, progress or NoProgress(), device)
        return self

    @abstractmethod
    def _learn(
        self,
        table: pa.Table,
        codes: IntArray,
        classes: int,
        rng: np.random.Generator,
        progress: Progress,
        device: DeviceName,
    ) -> None:
        """Learn from a checked training set; the parameters are those of :meth:`fit`.

        ``codes`` are int32 of shape (n,), and every class has at least 20 rows.
        """

    @abstractmethod
    def sample(self, labels: IntArray, rng: np.random.Generator) -> pa.Table:
        """Draw one feature row for each label.

        Parameters
        ----------
        labels : int32 array of shape (m,)
            Class codes, 0 … k − 1.
        rng : numpy.random.Generator

        Returns
        -------
        pyarrow.Table
            m rows, with exactly the schema of the fitted table.

        Raises
        ------
        ldpaudit.errors.InputError
            If the generator is not fitted, or a code is no class.
        """

    @abstractmethod
    def state(self) -> Mapping[str, Any]:
        """Return what was learnt, to be stored: numbers, texts, lists, dicts, NumPy arrays.

        Arrow arrays and schemas may be among them, too; nothing else.

        Raises
        ------
        ldpaudit.errors.InputError
            If the generator is not fitted.
        """

    @classmethod
    @abstractmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Generator":
        """Return the fitted generator whose :meth:`state` is ``state``."""

    def describe(self) -> Mapping[str, Any]:
        """Return what a declaration says about the generator; nothing depends on a single row."""
        return {
            "name": self.name,
            "version": VERSION,
            **self._kind(),
            "seed": self._seed,
            "rows": self._rows,
            "trained_on": self.trained_on,
        }

    def _kind(self) -> Mapping[str, Any]:
        """Return what else a declaration says about the generator."""
        return {}


def check_labels(labels: IntArray, classes: int, rows: int | None = None) -> IntArray:
    """Return class codes as int32, checked."""
    codes = np.asarray(labels)
    if codes.ndim != 1 or not np.issubdtype(codes.dtype, np.integer):
        raise InputError("The class codes must be a one-dimensional array of integers.")
    if rows is not None and len(codes) != rows:
        raise InputError(f"The features have {rows:,} rows, the labels {len(codes):,}.")
    if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < classes:
        raise InputError(f"Every class code must be one of 0 … {classes - 1}.")
    return codes.astype(np.int32)


def check_training_set(table: pa.Table, labels: IntArray, classes: int) -> IntArray:
    """Return the class codes of a training set, checked."""
    if classes < 2:
        raise InputError(f"A generator must have at least 2 classes. Got {classes}.")
    if table.num_rows == 0 or table.num_columns == 0:
        raise InputError("A generator needs at least one feature column and one row.")
    codes = check_labels(labels, classes, table.num_rows)
    absent = int((np.bincount(codes, minlength=classes) == 0).sum())
    if absent:
        raise InputError(f"Every class must have rows; {absent} of {classes} have none.")
    small = int((np.bincount(codes, minlength=classes) < MIN_CLASS_ROWS).sum())
    if small:
        raise InsufficientDataError(
            f"A generator needs at least {MIN_CLASS_ROWS} rows of every class; {small} of "
            f"{classes} classes have fewer."
        )
    return codes


def not_fitted() -> InputError:
    """Return the error for a generator that is used before it is fitted."""
    return InputError("The generator must be fitted, or loaded from a file, before it is used.")
