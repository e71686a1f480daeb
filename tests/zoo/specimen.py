"""What a fault is, and what a release of it consists of."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ldpaudit.commands.selftest.leaks import keep_chance as keep
from ldpaudit.commands.selftest.people import People, people
from ldpaudit.release import IntArray

CLAIM = 1.0
"""The ε that every release of the zoo declares."""


@dataclass(frozen=True)
class Specimen:
    """A release as an audit gets it, its true labels, and options of the audit."""

    table: pa.Table
    truth: pa.Table | None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trace:
    """By what an audit can find a fault.

    Attributes
    ----------
    signs : tuple of str
        Regular expressions for the facts that name it: ``fail:CHECK`` or ``warning:AUDIT: TEXT``.
        Exit status 1 always counts.
    why_not : str
        Why nobody can find it with this knowledge; empty where somebody can.
    """

    signs: tuple[str, ...] = ()
    why_not: str = ""


@dataclass(frozen=True)
class Fault:
    """A way in which a release goes wrong, or an honest one that looks as if it had.

    Attributes
    ----------
    id : str
    what : str
        What goes wrong, in one sentence.
    make : callable
        From the number of rows and a generator to a release.
    epsilon : float
        What somebody's label really loses, in nats; ∞ where it can be read off.
    insider, outsider : Trace
        With true labels, and from the release alone.
    honest : bool
        Whether nothing is wrong, so that exit status 1 is a false alarm.
    needs : tuple of str
        Audits that find it and are else left out, since they judge no claim and take long.
    """

    id: str
    what: str
    make: Callable[[int, np.random.Generator], Specimen]
    epsilon: float = math.inf
    insider: Trace = Trace()
    outsider: Trace = Trace()
    honest: bool = False
    needs: tuple[str, ...] = ()

    @property
    def grave(self) -> bool:
        """Whether some group of people loses at least one nat more than was promised."""
        return not self.honest and self.epsilon > CLAIM + 1


def release(
    persons: People,
    released: IntArray,
    columns: Mapping[str, Any] | None = None,
    rows: np.ndarray | None = None,
    **options: Any,
) -> Specimen:
    """Put together what randomized response at the claimed ε is said to have made.

    ``columns`` are added to the features, and ``rows`` is the order of the rows in the end.
    """
    frame = persons.frame.assign(**(columns or {}))
    frame["label"] = np.array(persons.classes)[released]
    truth = pd.DataFrame({"label": np.array(persons.classes)[persons.codes]})
    if rows is not None:
        frame, truth = frame.iloc[rows], truth.iloc[rows]
    mechanism = {
        "name": "randomized-response",
        "classes": list(persons.classes),
        "epsilon": CLAIM,
    }
    return declared(frame, truth, mechanism, **options)


def declared(
    frame: pd.DataFrame, truth: pd.DataFrame, mechanism: Mapping[str, Any], **options: Any
) -> Specimen:
    """Write a declaration into a table of features and released labels."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    content = {"version": 1, "label": "label", "mechanism": mechanism}
    table = table.replace_schema_metadata({"ldpaudit": json.dumps(content)})
    return Specimen(table, pa.Table.from_pandas(truth, preserve_index=False), options)


def replaced(codes: IntArray, k: int, kept: np.ndarray, rng: np.random.Generator) -> IntArray:
    """Return the codes where ``kept``, and one of the other k − 1 elsewhere."""
    others = (codes + rng.integers(1, k, len(codes))) % k
    return np.where(kept, codes, others).astype(np.int32)


def noisy(persons: People, chance: Any, rng: np.random.Generator) -> IntArray:
    """Keep each label with a chance (a number, or one for each row), else release another."""
    kept = rng.random(len(persons)) < chance
    return replaced(persons.codes, len(persons.classes), kept, rng)


def honest_labels(persons: People, rng: np.random.Generator) -> IntArray:
    """Release labels as claimed."""
    return noisy(persons, keep(CLAIM, len(persons.classes)), rng)


def of_people(
    k: int, work: Callable[[People, np.random.Generator], Specimen]
) -> Callable[[int, np.random.Generator], Specimen]:
    """Return a fault's ``make`` that starts from people with k classes."""
    return lambda n, rng: work(people(n, k, rng), rng)
