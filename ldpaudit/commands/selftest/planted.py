"""Planted releases: what each is to be, and the table that an audit gets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ldpaudit.commands.selftest.people import People, numbers, people
from ldpaudit.commands.selftest.stated import OF_NUMBERS, declared, mechanism
from ldpaudit.mechanisms import Mechanism
from ldpaudit.mechanisms.capabilities import NoisyFeatures, SyntheticFeatures
from ldpaudit.release import IndexArray

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

LABEL = "label"


@dataclass(frozen=True)
class Setting:
    """What a planted release is to be.

    Attributes
    ----------
    number : int
        Its place: with the seed of the self-test it decides every draw.
    kind : str
        How it was made: an honest way, or a leak.
    mechanism : str
        What it declares, and ``classes`` its labels and ``epsilon`` its ε in nats.
    rows : int
    excess : float
        How many nats more a leak of too little noise gives away.
    truth : bool
        Whether the audit gets the true labels.
    """

    number: int
    kind: str
    mechanism: str
    classes: int
    rows: int
    epsilon: float
    excess: float = 0.0
    truth: bool = True

    @property
    def numeric(self) -> bool:
        """Whether its labels are numbers."""
        return self.mechanism in OF_NUMBERS

    def made_with(self, epsilon: float | None = None) -> Mechanism:
        """Return the declared mechanism, or the same with another ε."""
        return mechanism(self.mechanism, self.classes, epsilon or self.epsilon)


@dataclass(frozen=True)
class Planted:
    """A release, its true labels, and what is known of it.

    Attributes
    ----------
    table, truth : pyarrow.Table
    epsilon : float
        What it truly gives away about a label, in nats; ∞ where labels can be read off.
    options : mapping
        Options of the audit.
    """

    table: "pa.Table"
    truth: "pa.Table"
    epsilon: float
    options: Mapping[str, Any] = field(default_factory=dict)


def true_labels(setting: Setting, persons: People) -> np.ndarray[Any, Any]:
    """Return the true labels as they would be written: names of classes, or whole numbers."""
    if setting.numeric:
        return numbers(persons, setting.classes - 1)
    return np.array(persons.classes)[persons.codes]


def noisy(mechanism: Mechanism, labels: Any, rng: np.random.Generator) -> Any:
    """Return the labels that a mechanism releases."""
    releasing: Any = mechanism
    if isinstance(mechanism, SyntheticFeatures):
        codes = np.searchsorted(np.array(mechanism.classes), labels).astype(np.int32)
        every = np.arange(len(mechanism.classes), dtype=np.int32)
        return np.array(mechanism.classes)[mechanism.sample(codes, every, rng).labels]
    return releasing.release(labels, rng)


def features(mechanism: Mechanism, persons: People, rng: np.random.Generator) -> "pd.DataFrame":
    """Return the features as the mechanism releases them."""
    import pandas as pd

    if isinstance(mechanism, NoisyFeatures):
        measured = persons.frame.select_dtypes("float32").astype(np.float64)
        values = mechanism.project(measured.to_numpy())
        measured[:] = mechanism.release_features(values, rng, simulation=True)
        return measured
    if isinstance(mechanism, SyntheticFeatures):
        n, replaced = len(persons), rng.random(len(persons)) < mechanism.noise
        both = pd.concat([persons.frame, people(n, len(persons.classes), rng).frame])
        return both.iloc[np.arange(n) + n * replaced].reset_index(drop=True)
    return persons.frame.copy()


def released(
    setting: Setting,
    frame: "pd.DataFrame",
    truth: Any,
    epsilon: float,
    order: IndexArray | None = None,
    **options: Any,
) -> Planted:
    """Put a release together; ``frame`` holds the released label, ``order`` is that of its rows."""
    import pandas as pd
    import pyarrow as pa

    from ldpaudit.datasets import declare

    rows = np.arange(len(frame)) if order is None else order
    claim = declared(setting.mechanism, setting.classes, setting.epsilon)
    table = pa.Table.from_pandas(frame.iloc[rows], preserve_index=False)
    known = pa.Table.from_pandas(pd.DataFrame({LABEL: truth[rows]}), preserve_index=False)
    declaring = declare(table.replace_schema_metadata(None), claim, LABEL)
    return Planted(declaring, known, epsilon, options)
