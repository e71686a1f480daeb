"""The options of ``ldpaudit learn``."""

from dataclasses import dataclass
from typing import Annotated, Literal

from ldpaudit.device import DeviceName, need_torch
from ldpaudit.doors import Argument, Option, ReleaseOptions, refuse
from ldpaudit.extras.learn.utility import LearnerKind
from ldpaudit.options import FileOptions


@dataclass(frozen=True, kw_only=True)
class LearnRequest(FileOptions, ReleaseOptions):
    """The options of ``ldpaudit learn``."""

    release: Annotated[str, Argument("The released file: Parquet, CSV, Excel …", file=True)]
    test: Annotated[
        str, Option("Rows outside of the release with true labels, to score on.", file=True)
    ]
    """``release`` and ``test``: the released file, and rows outside of it with true labels."""
    learner: Annotated[
        LearnerKind, Option("What is trained, corrected for the declared mechanism.")
    ] = "logistic"
    """What is trained; of numbers, "logistic" stands for ridge regression."""
    loss: Annotated[
        Literal["squared", "poisson", "quadratic", "exponential", "log"] | None,
        Option("Of numbers squared or poisson; of iwp quadratic, exponential or log."),
    ] = None
    """The loss where the learner offers several; None: its usual one."""
    confidence: Annotated[float, Option("The confidence of the score's interval.")] = 0.95
    """Of the score's interval."""
    device: Annotated[DeviceName, Option("Where a network is trained.")] = "auto"

    def check(self) -> None:
        """Refuse values out of range (InputError)."""
        refuse(
            not 0.5 < self.confidence < 1,
            f"The 'confidence' must lie between 0.5 and 1. Got {self.confidence:g} instead.",
        )
        refuse(isinstance(self.rng, int) and self.rng < 0, "The seed must not be negative.")
        if self.learner == "network":
            need_torch("The learner 'network'")
