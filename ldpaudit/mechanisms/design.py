"""What a mechanism is designed for, and what a family proposes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ldpaudit.mechanisms.interface import Mechanism, Need, Traits
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.release import FloatArray

PROVED: Final = 1e-6
"""How far above its certified bound a loss may be, relatively, to be called optimal."""


@dataclass(frozen=True)
class Problem:
    """What a mechanism is wanted for.

    Parameters
    ----------
    labels : LabelRange
        The labels, with a step; k of them.
    prior : float64 array of shape (k,)
        Their probabilities, summing to 1.
    epsilon : float
        ε > 0 in nats.
    loss : {"squared", "absolute", "poisson"}
        What is minimised in expectation; squared is ½(ŷ − y)².
    """

    labels: LabelRange
    prior: FloatArray
    epsilon: float
    loss: Loss = "squared"


@dataclass(frozen=True)
class Proposal:
    """A mechanism, and what is proved of its loss.

    Parameters
    ----------
    mechanism : Mechanism
    optimal_among : str
        The mechanisms among which its loss is the least, in words; "" where nothing is proved.
    """

    mechanism: Mechanism
    optimal_among: str = ""


@dataclass(frozen=True)
class Candidate:
    """A mechanism to be built.

    Parameters
    ----------
    variant : str
        Which of the family's forms; "" where there is one.
    build : callable
        Builds it for a problem.
    reference : bool
        Whether it is slow, and built on request only.
    """

    variant: str
    build: Callable[[Problem], Proposal]
    reference: bool = False


def numeric_traits(name: str, title: str, options: tuple[str, ...], need: Need) -> Traits:
    """Return the traits of a family stated by ε that releases a number for each row's number.

    ``need`` is what it needs besides its labels and ε.
    """
    return Traits(
        name=name,
        title=title,
        labels="numbers",
        outputs="numbers",
        label_depends_on_features=False,
        features="unchanged",
        rows="independent",
        options=options,
        stated_by=("epsilon",),
        whole=False,
        needs=frozenset({need}),
    )
