"""Designs: the problem, the candidates of a family, and the result."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.interface import Mechanism, Need, Traits
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.release import FloatArray

PROVED: Final = 1e-6
"""A loss is called optimal if it exceeds its certified bound by at most this share."""


@dataclass(frozen=True)
class Problem:
    """The labels, prior, ε and loss to design a mechanism for.

    Parameters
    ----------
    labels : LabelRange
        The labels, with a step; k of them.
    prior : float64 array of shape (k,)
        Their probabilities, summing to 1.
    epsilon : float
        ε > 0 in nats.
    loss : {"squared", "absolute", "poisson"}
        The loss to minimise in expectation; squared is ½(ŷ − y)².
    """

    labels: LabelRange
    prior: FloatArray
    epsilon: float
    loss: Loss = "squared"


@dataclass(frozen=True, eq=False)
class Design:
    """A mechanism of least expected loss, and how far it may be from the best one.

    Parameters
    ----------
    mechanism : FiniteMechanism
        Its ε is never above the one asked for.
    loss : float
        Its expected loss under the prior.
    bound : float
        A lower bound on the loss of all mechanisms that it was compared with.
    method : str
        How it was found.
    """

    mechanism: FiniteMechanism
    loss: float
    bound: float
    method: str

    @property
    def gap(self) -> float:
        """How much better a mechanism could be at most, relative to the loss."""
        return max(self.loss - self.bound, 0.0) / abs(self.loss) if self.loss else 0.0


@dataclass(frozen=True)
class Proposal:
    """A mechanism, and what is proved about its loss.

    Parameters
    ----------
    mechanism : Mechanism
    optimal_among : str
        The mechanisms among which its loss is the least; "" where nothing is proved.
    """

    mechanism: Mechanism
    optimal_among: str = ""


@dataclass(frozen=True)
class Candidate:
    """A mechanism that a design can build.

    Parameters
    ----------
    variant : str
        The form of the family; "" if there is only one.
    build : callable
        Builds it for a problem.
    """

    variant: str
    build: Callable[[Problem], Proposal]


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
