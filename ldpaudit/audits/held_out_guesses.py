"""Which held-out guesses of each attack were right, kept in memory while releases are compared.

Nothing here is ever written, printed or put into a result: only counts and bounds made of several
releases together leave a comparison.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import BoolArray, IndexArray

NOT_ASKED = -1
"""The attack was not asked about the row."""

Outcomes = npt.NDArray[np.int8]
"""For each row 1 (right), 0 (wrong) or :data:`NOT_ASKED`."""


@dataclass
class HeldOutGuesses:
    """Every attack's right and wrong held-out guesses, row by row.

    Attributes
    ----------
    outcomes : dict from the attack's name to an int8 array of shape (n,)
    attacks : set of str
        Those that use the release; the others are references.
    """

    outcomes: dict[str, Outcomes] = field(default_factory=dict, repr=False)
    attacks: set[str] = field(default_factory=set)

    def record(
        self, name: str, rows: IndexArray, right: BoolArray, n: int, *, uses_release: bool
    ) -> None:
        """Remember which of some held-out rows, positions in the release of n rows, were right."""
        kept = self.outcomes.setdefault(name, np.full(n, NOT_ASKED, dtype=np.int8))
        kept[rows] = right
        if uses_release:
            self.attacks.add(name)
