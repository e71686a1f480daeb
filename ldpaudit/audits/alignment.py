"""Are the true labels those of the released rows? Asked where no claimed channel shows it."""

from typing import Final

import numpy as np
from scipy.stats import random_table

from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import aligned_channel
from ldpaudit.release import FloatArray, IndexArray, label_table
from ldpaudit.result import Note

_DRAWS, _FEW_DRAWS, _LARGE = 199, 19, 40_000
_UNRELATED: Final = 0.05
UNRELATED: Final = (
    "The true labels reveal nothing about the released ones, as if they were in another order or "
    "of other people; or noise has left nothing of them. In the first case no number that uses "
    "them says anything about this release: give them in the order of the release, or join them "
    "by a column that both files have (--id)."
)


def unrelated_truth(context: AuditContext) -> tuple[Note, ...]:
    """Return a warning where released labels do not depend on the true ones and no claim says so.

    With a claimed channel, true labels that reveal nothing are refused or agree with the claim.
    """
    release = context.release
    if release.truth is None or release.bags is not None or release.constant:
        return ()
    if aligned_channel(context) is not None:
        return ()
    counts = label_table(
        release.truth, release.released, len(release.classes), len(release.outputs)
    )
    p_value = independence_p_value(counts, context.rng("alignment"))
    return () if p_value <= _UNRELATED else (Note.warning("assumptions", UNRELATED),)


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
    margins = table.sum(axis=1), table.sum(axis=0)
    expected = np.outer(*margins) / table.sum()

    def pearson(one: FloatArray) -> float:
        return float(((one - expected) ** 2 / expected).sum())

    draws = _DRAWS if table.size <= _LARGE else _FEW_DRAWS
    law = random_table(*margins, seed=rng)
    seen = pearson(table.astype(np.float64)) * (1 - 1e-12)
    return float((1 + sum(pearson(law.rvs()) >= seen for _ in range(draws))) / (1 + draws))
