"""Whether noise follows the rows' numbers: labels replaced in turn, or block by block."""

import numpy as np

from ldpaudit.audits.assumptions.noise import SUSPICIOUS, explained
from ldpaudit.audits.assumptions.rows import tested
from ldpaudit.audits.assumptions.standing import repeated
from ldpaudit.audits.assumptions.views import views
from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.error_budget import WHITE_NOISE
from ldpaudit.estimators.assumptions.patterns import pattern_p_value
from ldpaudit.estimators.departures import Departure, Groups

STEP = (
    "Look at how replaced labels are drawn: they follow the row's number, in turn or block by "
    "block, so a label that does not is the true one. Draw each label at random, on its own."
)
FOUND = (
    "Released labels follow the row's number, in turn or block by block, and those that do not are "
    "more often the true ones."
)


def looks_at_numbers(context: AuditContext) -> bool:
    """Return whether it is tested that noise follows the rows' numbers."""
    release = context.release
    # A file in the order of its reports, or of numbers, is in one of more than the label says.
    alone = release.reports is None and release.numeric is None
    return alone and release.truth is not None and tested(context)


@remembered("noise.pattern")
def pattern(context: AuditContext) -> float:
    """Return the p-value of "noise does not follow the row's number"; 1 where it is not tested."""
    release = context.release
    if not looks_at_numbers(context):
        return 1.0
    every = views(context)
    pairs = [(view.outcomes, view.by_released) for view in every]
    anywhere = Groups("place", np.zeros(len(release), dtype=np.int64), (), np.arange(len(release)))
    found = pattern_p_value(
        pairs,
        context.rng("noise", "pattern"),
        release.places,
        lambda place: explained(context, every[place], Departure("groups", anywhere)),
        repeated(context),
    )
    return min(found / WHITE_NOISE["row numbers"], 1.0)


def clear_pattern(context: AuditContext) -> bool:
    """Return whether noise is not taken for white because it follows the row's number."""
    return pattern(context) <= SUSPICIOUS
