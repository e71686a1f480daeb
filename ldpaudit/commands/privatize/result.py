"""What was released: numbers and places, without any label."""

from dataclasses import dataclass

from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.mechanisms.interface import Mechanism


@dataclass(frozen=True)
class PrivatizeSummary:
    """What was released.

    Attributes
    ----------
    request : PrivatizeRequest
    rows : int
        How many rows were released.
    mechanism : Mechanism
        Its ``description`` holds no label.
    total_epsilon : float
        ε in nats of the whole release: the mechanism's, and what a private prior spent.
    warnings : tuple of str
        One sentence each.
    sample_rows : int
        Rows of the synthetic sample, 0 where none was asked for.
    prior_epsilon : float
        The part of ``total_epsilon`` that a private prior spent.
    """

    request: PrivatizeRequest
    rows: int
    mechanism: Mechanism
    total_epsilon: float
    warnings: tuple[str, ...] = ()
    sample_rows: int = 0
    prior_epsilon: float = 0.0
