"""Are the true labels those of the released rows? Asked with a claim and without one."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import expit
from scipy.stats import binom, random_table

from ldpaudit.audits.interface import AuditContext, Dependence
from ldpaudit.audits.mechanism.reports import report_counts
from ldpaudit.audits.models import aligned_channel
from ldpaudit.audits.registered import dependence_of_registered
from ldpaudit.estimators.assumptions.afterwards import numbers_go_together
from ldpaudit.release import FloatArray, IndexArray, label_table
from ldpaudit.result import Note

_DRAWS, _FEW_DRAWS, _LARGE = 199, 19, 40_000
# The fewest draws by the channel whose p-value can fall to what is too little.
_FEWEST_BY_CHANNEL: Final = 100
_UNRELATED: Final = 0.05
# How seldom a release by the claimed channel may depend so little on its true labels.
_TOO_LITTLE: Final = 0.01
UNRELATED: Final = (
    "The true labels reveal nothing about the released ones, as if they were in another order or "
    "of other people; or noise has left nothing of them. In the first case no number that uses "
    "them says anything about this release: give them in the order of the release, or join them "
    "by a column that both files have (--id)."
)
NOT_SEEN: Final = (
    "The true labels reveal nothing about the released ones, which is to be expected of so much "
    "noise. Whether they are in the order of the release was therefore not seen."
)


@dataclass(frozen=True)
class Fit:
    """Whether the true labels belong to the released rows.

    ``unrelated``: whether they seem to be of other rows; ``notes``: what is said of that.
    """

    unrelated: bool = False
    notes: tuple[Note, ...] = ()


def truth_fit(context: AuditContext) -> Fit:
    """Return whether released labels depend on the true ones, and as much as claimed.

    True labels that reveal nothing are of other rows, unless the claimed channel leaves so little
    of them that this is to be expected. A claim that has no channel explains nothing.
    """
    release = context.release
    if release.truth is None or release.constant:
        return Fit()
    if release.bags is not None:
        found = dependence_of_registered(context)
    elif release.reports is not None:
        found = _of_reports(context)
    else:
        found = _of_labels(context)
    if found is None or found.unrelated <= _UNRELATED or numbers_go_together(release.numeric):
        return Fit()
    if found.as_claimed() > _TOO_LITTLE:
        return Fit(notes=(Note.info("assumptions", NOT_SEEN),))
    return Fit(unrelated=True, notes=(Note.warning("assumptions", UNRELATED),))


def _of_labels(context: AuditContext) -> Dependence:
    """Return how far released labels depend on the true ones; no channel explains too little."""
    release, rng = context.release, context.rng("alignment")
    assert release.truth is not None
    counts = label_table(
        release.truth, release.released, len(release.classes), len(release.outputs)
    )

    def as_claimed() -> float:
        channel = aligned_channel(context)
        return 0.0 if channel is None else dependence_p_value(counts, channel.matrix, rng)

    return Dependence(independence_p_value(counts, rng), as_claimed)


def _of_reports(context: AuditContext) -> Dependence | None:
    """Return how far recorded reports depend on the true labels, by guesses of the likelier one."""
    found, epsilon = report_counts(context), context.claim.epsilon
    if found is None or epsilon is None or not found.guesses:
        return None
    # A guess is right with a chance of at most e^ε/(1 + e^ε), which the largest ratios reach.
    return Dependence(
        float(binom.sf(found.right - 1, found.guesses, 0.5)),
        lambda: float(binom.cdf(found.right, found.guesses, expit(epsilon))),
    )


def dependence_p_value(counts: IndexArray, channel: FloatArray, rng: np.random.Generator) -> float:
    """Return a valid p-value of "labels depend on the true ones as much as a channel makes them".

    Small where they depend on them less. Pearson's statistic against tables drawn by the channel,
    float64 (k, m), for the same true labels; at least 0.005, and 0.0099 for large tables.
    """
    sizes = counts.sum(axis=1)
    seen, draws = _pearson(counts), _DRAWS if counts.size <= _LARGE else _FEWEST_BY_CHANNEL
    shares = channel / np.maximum(channel.sum(axis=1, keepdims=True), 1e-300)
    drawn = (_pearson(rng.multinomial(sizes, shares)) for _ in range(draws))
    return float((1 + sum(one <= seen * (1 + 1e-12) for one in drawn)) / (1 + draws))


def _pearson(counts: IndexArray | FloatArray) -> float:
    """Return Pearson's statistic of independence, 0 where a margin has one class only."""
    table = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0].astype(np.float64)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(((table - expected) ** 2 / expected).sum())


def independence_p_value(counts: IndexArray, rng: np.random.Generator) -> float:
    """Return a valid p-value of independence, of at least 0.005.

    Pearson's statistic against tables of the same margins, drawn at random. 1 where a margin has
    one class only.

    References
    ----------
    Patefield (1981), "An efficient method of generating random R × C tables".
    """
    table = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if min(table.shape) < 2:
        return 1.0
    draws = _DRAWS if table.size <= _LARGE else _FEW_DRAWS
    law = random_table(table.sum(axis=1), table.sum(axis=0), seed=rng)
    seen = _pearson(table) * (1 - 1e-12)
    return float((1 + sum(_pearson(law.rvs()) >= seen for _ in range(draws))) / (1 + draws))
