"""Which held-out guesses of each attack were right, kept in memory while releases are compared.

Nothing here is ever written, printed or put into a result: only counts and bounds made of several
releases together leave a comparison.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import BoolArray, FloatArray, HalfArray, IndexArray

NOT_ASKED = -1
"""The attack was not asked about the row."""

Outcomes = npt.NDArray[np.int8]
"""For each row 1 (right), 0 (wrong) or :data:`NOT_ASKED`."""


@dataclass
class HeldOutGuesses:
    """Every attack's right and wrong held-out guesses, row by row.

    ``outcomes``, dict from the attack's name to an int8 (n,). ``values``, dict from
    "<attack>.<measure>" to a float64 (n,): Of attacks on numeric labels: squared errors, or whether
    a guess was near; NaN where the attack was not asked. ``halves``, int8 (n,): in which half a row
    is: the rows of one half are the held-out rows of one fold.
    """

    outcomes: dict[str, Outcomes] = field(default_factory=dict, repr=False)
    values: dict[str, FloatArray] = field(default_factory=dict, repr=False)
    halves: HalfArray = field(default_factory=lambda: np.empty(0, dtype=np.int8), repr=False)

    def record(self, name: str, rows: IndexArray, right: BoolArray, halves: HalfArray) -> None:
        """Remember for which held-out rows, by position in the release, the guess was right."""
        self.halves = halves
        unasked = np.full(len(halves), NOT_ASKED, dtype=np.int8)
        self.outcomes.setdefault(name, unasked)[rows] = right

    def record_values(
        self, name: str, rows: IndexArray, measured: Mapping[str, FloatArray], halves: HalfArray
    ) -> None:
        """Remember the values of an attack on numeric labels by measure, on some held-out rows."""
        self.halves = halves
        for measure, values in measured.items():
            unasked = np.full(len(halves), np.nan)
            self.values.setdefault(f"{name}.{measure}", unasked)[rows] = values
