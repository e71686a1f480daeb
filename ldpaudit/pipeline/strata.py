"""A column whose channel depends on a stratum, in views: each is a release with a claim of its own.

Rows of different strata are never compared, so all that bounds and tests assume of one channel
holds within a stratum.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from ldpaudit.audits.interface import Plan
from ldpaudit.judging.policy import Policy
from ldpaudit.mechanisms import Mechanism
from ldpaudit.mechanisms.capabilities import LabelByStratum
from ldpaudit.release import Declaration, Release

OF_THE_CHANNEL: Final = frozenset(("assumptions", "mechanism", "power"))
"""The audits of a stratum; all others look at the column as a whole."""
_CHECKS: Final = frozenset(
    (
        "claimed_epsilon",
        "undetected_excess",
        "claimed_channel",
        "rare_classes",
        "shared_noise",
        "composition",
    )
)
"""The checks of a stratum."""


def strata_of(release: Release, claim: Mechanism, plan: Plan) -> Iterator[tuple[Release, Plan]]:
    """Yield each stratum that has rows, in the declared order, with a label called by its value.

    Nothing where one channel serves all rows.
    """
    strata, declared = release.strata, release.declaration
    if strata is None or declared is None or not isinstance(claim, LabelByStratum):
        return
    for place in np.unique(strata.codes):
        rows, own = np.flatnonzero(strata.codes == place), claim.by_stratum[place]
        stated = Declaration(own.name, own.declaration(), declared.source)
        view = replace(
            release.take(rows),
            strata=None,
            declared=None,
            declaration=stated,
            label=str(claim.values[place]),
        )
        slices = tuple(replace(one, codes=one.codes[rows]) for one in plan.slices)
        yield view, replace(plan, slices=slices)


def shared_by_strata(policy: Policy, strata: int) -> Policy:
    """Return the policy of a column or a stratum of it: the error is shared with all others."""
    if not strata or policy.audit.correction == "none":
        return policy
    confidence = 1 - (1 - policy.audit.confidence) / (strata + 1)
    audit = policy.audit.model_copy(update={"confidence": confidence})
    return policy.model_copy(update={"audit": audit})


def of_a_stratum(policy: Policy) -> Policy:
    """Return what a policy asks of a stratum: the checks of its channel alone."""
    others = type(policy.checks).model_fields.keys() - _CHECKS
    checks = policy.checks.model_copy(update=dict.fromkeys(others))
    audit = policy.audit.model_copy(update={"min_rows": None})
    return policy.model_copy(update={"checks": checks, "audit": audit, "claim": None})
