"""What a replay found: which released labels are what the declared mechanism draws again."""

from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

# What a replay found. "impossible": it could not be made, and nothing is wrong. "foreign": the key
# is another release's. "edited": the declaration is not the one that was committed to.
Status = Literal["proven", "changed", "partly", "unmatched", "edited", "foreign", "impossible"]
OTHER_TRUTH: Final = (
    "The true labels in the file are not those that the key was committed with: some were changed, "
    "or perhaps they stand in another order than in the file that privatize --secret wrote"
)
# With a larger p-value nothing is put down to true labels.
OPEN: Final = 0.5


@dataclass(frozen=True)
class FeatureReplay:
    """What was found of features that the mechanism drew."""

    # ``rows``: those whose features were drawn again and compared; ``changed`` of them differ.
    # ``withheld``: whether no row has features. ``unseen``: what was drawn and is not compared, in
    # words; "" where all is.

    rows: int = 0
    changed: int = 0
    withheld: bool = False
    unseen: str = ""


@dataclass(frozen=True)
class ColumnReplay:
    """What was found of one private column."""

    # ``rows`` were compared, ``equal`` of them are as drawn. Of the changed ones ``true`` hold the
    # true label, as ``drawn_true`` of the labels drawn for them would; ``p_value``: the chance of
    # so many or more, had only drawn labels been looked at. ``classes``: the released labels of the
    # changed rows with their counts, the most frequent first. ``missing`` of the changed ones are
    # empty; ``decimals``: those to which all changed numbers look rounded. ``places``: the changed
    # rows; ``hits``: which of them hold the true label.

    label: str
    rows: int
    equal: int
    true: int = 0
    drawn_true: int = 0
    p_value: float = 1.0
    classes: tuple[tuple[str, int], ...] = ()
    missing: int = 0
    decimals: int | None = None
    places: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), repr=False)
    hits: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_), repr=False)

    @property
    def changed(self) -> int:
        """How many labels are not those that were drawn."""
        return self.rows - self.equal


@dataclass(frozen=True)
class Replay:
    """What drawing a release's noise again found."""

    status: Status
    reason: str = ""
    """Why it could not be drawn again, or what is wrong, in words."""
    columns: tuple[ColumnReplay, ...] = ()
    committed: int = 0
    """Rows that were drawn."""
    rows: int = 0
    """Those of the release, of which ``kept`` are matched with drawn ones and ``repeated`` give
    remembered answers again."""
    kept: int = 0
    left_out: int = 0
    added: int = 0
    doubled: int = 0
    """``left_out``, ``added`` and ``doubled``: rows."""
    repeated: int = 0
    reordered: bool = False
    other_order: bool = False
    sealed: bool = True
    """Whether the true labels are those that were committed with."""
    commitment: str = ""
    mark: str = field(default="", repr=False)
    """The same for releases of one key."""
    epsilon: tuple[float | None, float | None] | None = None
    """Where the declaration was edited, what the noise was drawn at and what is declared now."""
    fields: tuple[str, ...] = ()
    """Where the declaration was edited, the entries of it that differ, such as "before"."""
    features: FeatureReplay | None = None
    """What was found of those that the mechanism drew; None where it draws none."""
    given: str = ""
    """What else the draw took from whoever asks, in words."""
    unseen: str = ""
    """What besides labels and features was drawn and is not compared, in words."""

    @property
    def not_compared(self) -> str:
        """What was drawn and is not compared, in words; "" where all is."""
        of_features = "" if self.features is None else self.features.unseen
        return " and ".join(filter(None, [of_features, self.unseen]))

    @property
    def proven(self) -> bool:
        """Whether every released label is what the declared mechanism draws."""
        return self.status == "proven"

    @property
    def p_value(self) -> float:
        """The chance of so many true labels among the changed ones, corrected for columns."""
        return min([1.0, *(one.p_value * len(self.columns) for one in self.columns)])

    def of(self, label: str) -> "Replay":
        """Return what was found of one column."""
        if not self.columns:
            return self
        own = tuple(one for one in self.columns if one.label == label)
        status: Status = "proven"
        if any(one.changed for one in own) or features_differ(self.features):
            status = "changed"
        elif not own or self.left_out or self.added or self.doubled or self.repeated:
            status = "partly"
        return replace(self, columns=own, status=status).if_sealed()

    def if_sealed(self) -> "Replay":
        """Return itself, unless it says something of true labels that were not committed to.

        What differs from them need not be the release, unless it holds more of them than by chance.
        """
        held = self.status == "changed" and self.p_value <= OPEN
        if self.sealed or held or self.status not in ("proven", "partly", "changed"):
            return self
        return replace(self, status="foreign", reason=OTHER_TRUTH, columns=(), kept=0)


def features_differ(found: FeatureReplay | None) -> bool:
    """Return whether features that were drawn again are not the released ones."""
    return found is not None and found.changed > 0


def upper_tail(count: int, n: int, mean: float) -> float:
    """Return at most how likely a count of independent events is, of this mean probability."""
    # Beyond its mean by 1, its tail is at most that of the binomial distribution of the same mean
    # (Hoeffding 1956, Theorem 5); else nothing is said.
    from scipy.stats import binom

    if n == 1:
        return mean if count else 1.0
    return float(binom.sf(count - 1, n, mean)) if count >= n * mean + 1 else 1.0
