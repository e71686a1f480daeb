"""The result of a sweep."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ldpaudit import __version__
from ldpaudit.commands.sweep.least_noise import LeastNoise
from ldpaudit.commands.sweep.request import SweepRequest
from ldpaudit.commands.sweep.summary import Setting
from ldpaudit.result.access import CONFIDENTIAL

if TYPE_CHECKING:
    import pandas as pd

SIMULATED: Final = (
    "Every draw is a simulation with a seeded generator: nothing was released, and no table that "
    "was simulated is kept."
)


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep.

    Attributes
    ----------
    request : SweepRequest
    settings : tuple of Setting
        Mechanism by mechanism, the least noise first.
    least : tuple of LeastNoise
        For each mechanism.
    reference : mapping or None
        The stored score of a learner with the true labels.
    level : float
        The confidence of intervals of one draw.
    rows, test_rows, seed : int
        Rows of each simulated release; rows that learners were tested on; the root seed.
    warnings : tuple of str
    """

    request: SweepRequest
    settings: tuple[Setting, ...]
    least: tuple[LeastNoise, ...]
    reference: dict[str, Any] | None
    level: float
    rows: int
    test_rows: int | None
    seed: int
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Sweep({len(self.settings)} settings of {', '.join(self.request.mechanisms)})"

    def to_frame(self) -> "pd.DataFrame":
        """Return one row for each setting: its noise, its verdict, and averages of its numbers."""
        import pandas as pd

        stated = ("mechanism", "parameter", "value", "epsilon", "noise", "verdict")
        rows = [
            {name: getattr(setting, name) for name in stated}
            | {mean.id: mean.value for mean in setting.means}
            | ({} if setting.test is None else {setting.test.id: setting.test.value})
            for setting in self.settings
        ]
        return pd.DataFrame(rows)

    def stored(self) -> dict[str, Any]:
        """Return the result for JSON: the same however the sweep was run."""
        measure = None if self.reference is None else {self.reference["id"]: self.reference}
        return {
            "access": CONFIDENTIAL,
            "ldpaudit_version": __version__,
            "points": [setting.stored(self.level) for setting in self.settings],
            "least_noise": {least.mechanism: least.stored() for least in self.least},
            "reference": measure,
            "notes": [SIMULATED, *self.warnings],
            "run": {
                "seed": self.seed,
                "rows": self.rows,
                "test_rows": self.test_rows,
                "repeats": self.request.repeats,
                "learner": self.request.learner,
            },
        }
