"""What the noise of a neighbour gives away of a label: a certified lower bound of ε."""

from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.rows import Clusters, counted, noise_clusters
from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.assumptions.bets import disjoint_pairs
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
    pairs = _pairs(context, found)
    if pairs is None:
        return None
    rng = context.rng("neighbours", "guesses")
    counts = neighbour_guesses(context.truth, release.released, *pairs, rng)
    return counts if counts.guesses else None


def _pairs(context: AuditContext, found: Clusters) -> tuple[IndexArray, IndexArray] | None:
    """Return pairs of rows that share noise, one of each cluster."""
    if found.codes is not None:
        first, second = disjoint_pairs(found.codes, context.rng("neighbours"))
        one = np.unique(found.codes[first], return_index=True)[1]
        return first[one], second[one]
    lags = counted(context).lags
    return None if lags is None else lags.pairs(len(context.release))


def neighbour_bound(context: AuditContext, counts: GuessCounts, alpha: float) -> EpsilonBound:
    """Return the bound of ε at level 1 − alpha: half of alpha for seeing that noise is shared."""
    test = noise_clusters(context).test
    seen = test is not None and test.p_value <= alpha / 2
    return epsilon_lower(counts if seen else GuessCounts(counts.candidates, 0, 0), alpha / 2)
