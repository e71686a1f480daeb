"""How long a generator is trained, what happened, and when training has failed."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from torch import Tensor

from ldpaudit.errors import GeneratorDivergedError
from ldpaudit.release import FloatArray

StopReason = Literal["steps", "no-improvement", "time"]

_UNBEATEN = 0.02
_LOST_IN_A_ROW = 8
_NO_BETTER = 0.7


@dataclass(frozen=True)
class TrainingPlan:
    """How long and how fast a generator is trained.

    Attributes
    ----------
    steps : int
        At most so many steps of the generator.
    seconds : float
        At most so long; reached, it makes the result depend on the machine's speed.
    batch : int
        Rows in a batch, an equal number of each class.
    learning_rate : float
        Adam's step of the generator; the critic's is twice that.
    evaluate_every : int
        Steps between two looks at the distance to held-out rows.
    patience : int
        Training stops after so many looks without an improvement.
    """

    steps: int
    seconds: float
    batch: int
    learning_rate: float
    evaluate_every: int = 200
    patience: int = 8


@dataclass(frozen=True)
class TrainingRecord:
    """What happened.

    Attributes
    ----------
    steps : int
        Steps made.
    stopped : {"steps", "no-improvement", "time"}
        Which limit ended the training.
    at : tuple of int
        The steps at which training was looked at.
    distance : tuple of float
        The distance between generated and held-out rows at each look.
    """

    steps: int
    stopped: StopReason
    at: tuple[int, ...]
    distance: tuple[float, ...]


class TrainingLog:
    """What training looked like so far, and the best weights."""

    def __init__(self, untrained: float, floor: float, plan: TrainingPlan) -> None:
        # Held-out rows are few: even true rows are not at distance 0.
        self._limit = floor + _NO_BETTER * max(untrained - floor, 0.0)
        self._plan = plan
        self._at: list[int] = []
        self._losses = math.nan, math.nan
        self._distances: list[float] = []
        self._best: dict[str, Tensor] | None = None
        self._lost = 0

    def check(self, step: int, values: tuple[float, ...]) -> None:
        """Raise if a loss or a distance is no finite number."""
        if not all(math.isfinite(value) for value in values):
            raise GeneratorDivergedError(
                f"Training the generator failed after {step} steps: a loss is no finite number. "
                f"Nothing is kept; use a smaller learning rate."
            )

    def look(
        self, step: int, sums: FloatArray, weights: dict[str, Tensor], distance: float
    ) -> None:
        """Add one look; raise if training has failed."""
        steps = step - (self._at[-1] if self._at else 0)
        critic, generator = float(sums[0] / steps), float(sums[1] / steps)
        self.check(step, (critic, generator, distance))
        if not self._distances or distance < min(self._distances):
            self._best = weights
        self._at.append(step)
        self._losses = critic, generator
        self._distances.append(distance)
        self._lost = self._lost + 1 if critic < _UNBEATEN else 0
        if self._lost >= _LOST_IN_A_ROW:
            raise GeneratorDivergedError(
                f"Training the generator failed after {step} steps: the critic tells every "
                f"generated row. Nothing is kept; use a smaller learning rate or more rows."
            )

    @property
    def patience_is_over(self) -> bool:
        """Whether the last looks brought no improvement."""
        looks = len(self._distances)
        return looks - 1 - int(np.argmin(self._distances)) >= self._plan.patience

    def best_weights(self) -> dict[str, Tensor]:
        """Return the weights nearest to held-out rows; raise if they are not near enough."""
        if self._best is None or not min(self._distances) < self._limit:
            raise GeneratorDivergedError(
                f"Training the generator failed: after {self._at[-1]} steps its rows are hardly "
                f"nearer to held-out ones than those of an untrained generator. Nothing is kept."
            )
        return self._best

    def summary(self) -> str:
        """Return the last look as a phrase."""
        critic, generator = self._losses
        return (
            f"generator: {self._at[-1]} steps, critic's loss {critic:.3g}, generator's loss "
            f"{generator:.3g}, distance {min(self._distances):.3g}"
        )

    def record(self, stopped: StopReason) -> TrainingRecord:
        """Return everything."""
        return TrainingRecord(self._at[-1], stopped, tuple(self._at), tuple(self._distances))
