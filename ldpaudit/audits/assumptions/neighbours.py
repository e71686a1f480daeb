"""What the noise of a neighbour gives away of a label: a certified lower bound of ε."""

from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.noise import label_noise
from ldpaudit.audits.assumptions.rows import Clusters, counted, noise_clusters
from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.assumptions.bets import bet_on_pairs, disjoint_pairs, p_value
from ldpaudit.estimators.assumptions.shared_noise import neighbour_guesses
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.guesses import GuessCounts, epsilon_lower
from ldpaudit.release import IndexArray

BOUND: Final = "mechanism.shared_noise_epsilon_lower"


def neighbour_counts(context: AuditContext) -> GuessCounts | None:
    """Return how often a neighbour's noise tells the true label; None where none is shared.

    None also where labels are numbers or no two rows that share noise differ in their true labels:
    noise that one person's rows share gives nothing away.
    """
    return context.once("assumptions.neighbours", lambda: _count(context))


def _count(context: AuditContext) -> GuessCounts | None:
    release, found = context.release, noise_clusters(context)
    whole = release.outputs == release.classes and release.numeric is None
    if release.truth is None or not whole or found.test is None:
        return None
    pairs = _noise_pairs(context)
    if pairs is None:
        return None
    rng = context.rng("neighbours", "guesses")
    counts = neighbour_guesses(context.truth, release.released, *pairs, rng)
    return counts if counts.guesses else None


def _noise_pairs(context: AuditContext) -> tuple[IndexArray, IndexArray] | None:
    found = noise_clusters(context)
    return context.once("assumptions.neighbour pairs", lambda: _pairs(context, found))


def _pairs(context: AuditContext, found: Clusters) -> tuple[IndexArray, IndexArray] | None:
    """Return pairs of rows that share noise, one of each cluster."""
    if found.codes is not None:
        first, second = disjoint_pairs(found.codes, context.rng("neighbours"))
        one = np.unique(found.codes[first], return_index=True)[1]
        return first[one], second[one]
    lags = counted(context).lags
    return None if lags is None else lags.pairs(len(context.release))


def neighbour_bound(context: AuditContext, counts: GuessCounts, alpha: float) -> EpsilonBound:
    """Return the bound of ε at level 1 − alpha: half of alpha for seeing that noise is shared.

    It must be seen among rows that differ in their true labels: those that do not may be one
    person's, whose labels cannot differ, so that shared noise gives nothing away.
    """
    test = noise_clusters(context).test
    seen = test is not None and max(test.p_value, _differing_p_value(context)) <= alpha / 2
    return epsilon_lower(counts if seen else GuessCounts(counts.candidates, 0, 0), alpha / 2)


def _differing_p_value(context: AuditContext) -> float:
    """Return the p-value of "pairs of rows with different true labels share no noise"."""
    pairs, truth = _noise_pairs(context), context.truth
    if pairs is None:
        return 1.0
    differ, noise = truth[pairs[0]] != truth[pairs[1]], label_noise(context)
    first, second = pairs[0][differ], pairs[1][differ]
    return p_value(bet_on_pairs(noise.outcomes, noise.chances, first, second))
