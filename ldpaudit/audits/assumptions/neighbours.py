"""What the noise of a neighbour gives away of a label: a certified lower bound of ε."""

from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.noise import label_noise
from ldpaudit.audits.assumptions.rows import Clusters, counted, noise_clusters
from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.assumptions.bets import bet_on_pairs, disjoint_pairs, p_value
from ldpaudit.estimators.assumptions.lags import tried
from ldpaudit.estimators.assumptions.shared_noise import BLOCKS, LAGS, neighbour_guesses
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.guesses import GuessCounts, epsilon_lower
from ldpaudit.release import BoolArray, IndexArray, IntArray

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
    others = shared_with_others(context)
    seen = others is not None and others <= alpha / 2
    return epsilon_lower(counts if seen else GuessCounts(counts.candidates, 0, 0), alpha / 2)


def shared_with_others(context: AuditContext) -> float | None:
    """Return the p-value of "no row shares noise with another person's".

    Valid; None without true labels. Where it is small the claim is refuted: who knows one of the
    two labels sees the noise, and with it the other label. Rows are another person's where their
    true labels differ; at a distance where labels agree no more than any two, all rows are. Noise
    that only rows with one true label share may be one person's, and gives nothing away.
    """
    return context.once("assumptions.others", lambda: _others(context))


def _others(context: AuditContext) -> float | None:
    found = noise_clusters(context)
    if found.test is None:
        return None
    truth, noise, rng = context.truth, label_noise(context), context.rng("neighbours", "others")
    # Nobody's answers are remembered so that a block of them has a given number of changes.
    p_values = [found.test.corrected(BLOCKS)]
    for name in found.shared:
        first, second = disjoint_pairs(found.kinds[name], rng)
        differ = truth[first] != truth[second]
        wealth = bet_on_pairs(noise.outcomes, noise.chances, first[differ], second[differ])
        p_values.append(p_value(wealth) / found.test.shares[name])
    lag = found.test.order.lags.strongest
    if lag < len(truth) and not found.ordered:
        wealth = noise.bet_at(lag, _of_others(truth, lag))
        p_values.append(tried(lag, len(truth)) * p_value(wealth) / found.test.shares[LAGS])
    return max(found.test.p_value, min(1.0, *p_values))


def _of_others(truth: IntArray, lag: int) -> BoolArray:
    """Return which pairs of rows at a distance are certainly not one person's, bool (n − lag,).

    Those with different labels; all, where labels at that distance agree no more than any two.
    """
    differ: BoolArray = truth[:-lag] != truth[lag:]
    shares = np.bincount(truth) / len(truth)
    chance = float(shares @ shares)
    spread = np.sqrt(chance * (1 - chance) / len(differ))
    return differ if 1 - differ.mean() > chance + 2 * spread else np.ones_like(differ)
