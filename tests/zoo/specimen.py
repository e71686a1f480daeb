"""What a fault is, and what a release of it consists of."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ldpaudit.extras.selftest import planting
from ldpaudit.extras.selftest.planting import People, Planted, people, replaced
from ldpaudit.extras.selftest.planting import keep_chance as keep
from ldpaudit.release import Declaration, IntArray

CLAIM = 1.0
"""The ε that every release of the zoo declares."""


Specimen = Planted
"""A release as an audit gets it, its true labels, and options of the audit."""


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
    claim = {"name": "randomized-response", "classes": list(persons.classes), "epsilon": CLAIM}
    # What the people's table had is from before the noise, as a truth file with all columns shows.
    options.setdefault("before", [name for name in persons.frame if name not in (columns or {})])
    return declared(frame, persons.labels, claim, rows, **options)


def declared(
    frame: pd.DataFrame,
    truth: Any,
    mechanism: Mapping[str, Any],
    rows: np.ndarray | None = None,
    **options: Any,
) -> Specimen:
    """Write a declaration into a table of features and released labels."""
    parameters = {key: value for key, value in mechanism.items() if key != "name"}
    claim = Declaration(mechanism["name"], parameters)
    return planting.declared(frame, truth, claim, rows, **options)


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
