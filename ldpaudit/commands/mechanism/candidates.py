"""The mechanisms that a design compares, each built for one prior, loss and ε."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.release import FloatArray

_NEAR: Final = 1e-6
"""How far above its certified bound a loss may be, relatively, to be called optimal."""
_MESH_CELLS: Final = 160_000
_MESH_LABELS: Final = 500


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
    """A mechanism to be built: its name, which of its forms, and how."""

    name: str
    variant: str
    build: Callable[[Problem], Proposal]


def candidates(reference: bool = False) -> Iterator[Candidate]:
    """Yield the candidates; with ``reference`` the mesh linear program too, which is slow."""
    yield Candidate("randomized-response", "", _randomized_response)
    yield Candidate("rr-top-k", "with prior", _with_prior)
    yield Candidate("rr-on-bins", "", _on_bins)
    yield Candidate("optimal-unbiased", "", _optimal_unbiased)
    yield Candidate("debiased-rr", "", _debiased)
    for name in ("laplace", "discrete-laplace", "staircase", "discrete-staircase"):
        for clipped in (False, True):
            words = "clipped" if clipped else "unclipped"
            yield Candidate(name, words, _noise(name, clipped))
    yield Candidate("exponential", "on the labels", _exponential(True))
    yield Candidate("exponential", "on their range", _exponential(False))
    if reference:
        yield Candidate("channel", "mesh linear program, unbiased", _mesh)


def _randomized_response(problem: Problem) -> Proposal:
    from ldpaudit.mechanisms.response.randomized_response import RandomizedResponse

    return Proposal(RandomizedResponse.from_epsilon(problem.labels.classes, problem.epsilon))


def _with_prior(problem: Problem) -> Proposal:
    from ldpaudit.mechanisms.response.rr_top_k import RandomizedResponseTopK

    classes = problem.labels.classes
    return Proposal(RandomizedResponseTopK.from_prior(classes, problem.prior, problem.epsilon))


def _on_bins(problem: Problem) -> Proposal:
    """Ghazi et al. (2023), Theorem 5: optimal for every loss that grows with the distance."""
    from ldpaudit.mechanisms.numeric.bin_design import optimal_bins

    found = optimal_bins(problem.labels.classes, problem.prior, problem.epsilon, problem.loss)
    return Proposal(found.mechanism, "all ε-label-DP mechanisms")


def _optimal_unbiased(problem: Problem) -> Proposal:
    from ldpaudit.mechanisms.numeric.unbiased_design import optimal_unbiased

    found = optimal_unbiased(problem.labels.classes, problem.prior, problem.epsilon, problem.loss)
    among = "unbiased ε-label-DP mechanisms"
    if problem.loss == "absolute":
        among += " with outputs within those of debiased randomized response"
    return Proposal(found.mechanism, among if found.gap <= _NEAR else "")


def _debiased(problem: Problem) -> Proposal:
    from ldpaudit.mechanisms.numeric.debiased_rr import DebiasedRR

    return Proposal(DebiasedRR(problem.labels.classes, problem.epsilon))


def _noise(name: str, clipped: bool) -> Callable[[Problem], Proposal]:
    def build(problem: Problem) -> Proposal:
        from ldpaudit.mechanisms.noise.discrete_laplace import DiscreteLaplace
        from ldpaudit.mechanisms.noise.laplace import Laplace
        from ldpaudit.mechanisms.noise.staircase import DiscreteStaircase, Staircase

        families: dict[str, Callable[[LabelRange, float, bool], Mechanism]] = {
            "laplace": Laplace,
            "discrete-laplace": DiscreteLaplace,
            "staircase": Staircase,
            "discrete-staircase": DiscreteStaircase,
        }
        return Proposal(families[name](problem.labels, problem.epsilon, clipped))

    return build


def _exponential(on_labels: bool) -> Callable[[Problem], Proposal]:
    def build(problem: Problem) -> Proposal:
        from ldpaudit.mechanisms.noise.exponential import DiscreteExponential, Exponential

        family = DiscreteExponential if on_labels else Exponential
        return Proposal(family(problem.labels, problem.epsilon))

    return build


def _mesh(problem: Problem) -> Proposal:
    """Badanidiyuru et al. (2023), section 3: the linear program over a mesh of outputs."""
    from ldpaudit.mechanisms.numeric.mesh_program import design_on_outputs, feasible_outputs

    classes = problem.labels.classes
    k = len(classes)
    if k > _MESH_LABELS:
        raise InputError(f"The linear program takes at most {_MESH_LABELS} labels.")
    if problem.loss == "poisson":
        raise InputError("The linear program's mesh holds outputs below 0.")
    mesh = feasible_outputs(classes, problem.epsilon, max(k, min(8 * k, _MESH_CELLS // k)))
    found = design_on_outputs(classes, problem.prior, problem.epsilon, mesh, problem.loss)
    return Proposal(found.mechanism)


def outputs_of(mechanism: Mechanism) -> float:
    """Return how many outputs there are, ∞ where they are not finitely many."""
    channel = mechanism.channel
    return math.inf if channel is None else len(channel.outputs)
