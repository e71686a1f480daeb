"""What is said between the command and its workers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ldpaudit.commands.sweep.grid import Point
from ldpaudit.commands.sweep.request import SweepRequest
from ldpaudit.policy import Policy

Task = Literal["generator", "reference"] | Point
"""Fit the generator, score a learner on the true labels, or measure a point."""


@dataclass(frozen=True)
class Setup:
    """What a worker is told first.

    Attributes
    ----------
    request : SweepRequest
    seed : int
    policy : Policy or None
    generator : Path
        Where the fitted generator is written, and read.
    """

    request: SweepRequest
    seed: int
    policy: Policy | None
    generator: Path


@dataclass(frozen=True)
class Answer:
    """What came of a task.

    Attributes
    ----------
    content : mapping or None
        What is to be kept; None where it failed.
    reason : str
        Why it failed, in one line.
    peak : float
        The most memory that the process has held, in GiB.
    """

    content: dict[str, Any] | None
    reason: str = ""
    peak: float = 0.0
