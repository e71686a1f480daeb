"""Synthetic features: are they realistic, and do they give away the rows that they replace?

For double randomized response, or any release that replaces whole feature rows. The rows whose
released features differ from the original ones are the synthetic ones.
"""

from collections.abc import Iterator

import numpy as np

from ldpaudit.audits.interface import AuditContext, Counts
from ldpaudit.audits.renyi.sides import replaced_rows
from ldpaudit.audits.synthetic.memorisation import held_out_estimates, own_row_estimate
from ldpaudit.audits.synthetic.realism import realism_estimates
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.intervals.binomial import clopper_pearson
from ldpaudit.mechanisms.capabilities import SyntheticFeatures
from ldpaudit.result import Estimate, Finding, Note

AUDIT_ID = "synthetic"
FEWEST = 100
"""The fewest synthetic rows that are audited."""


class SyntheticAudit:
    """Compares synthetic features with the true ones."""

    id = AUDIT_ID
    counts: Counts = "rows"

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why nothing can be compared, None where something can."""
        release = context.release
        if release.features.width == 0:
            return "the release has no features"
        if release.original is None:
            return "synthetic rows can be recognised only with the original features (--original)"
        if not context.claim.traits.features_replaced:
            return f"the claimed mechanism {context.claim.name} replaces no features"
        if release.original.is_constant():
            return "the original features tell no rows apart"
        return None

    def run(self, context: AuditContext) -> Finding:
        """Run it; with fewer than 100 synthetic rows raise InsufficientDataError."""
        release = context.release
        original = release.original
        assert original is not None
        rows = np.flatnonzero(replaced_rows(original, release.features)).astype(np.int64)
        if len(rows) < FEWEST:
            raise InsufficientDataError(
                f"Synthetic features need at least {FEWEST} rows whose released features differ "
                "from the original ones."
            )
        estimates = (
            replaced_share(len(rows), len(release), context.plan.confidence),
            own_row_estimate(context, original, rows),
            *realism_estimates(context, original, rows),
            *held_out_estimates(context, rows),
        )
        return Finding(estimates=estimates, notes=tuple(_notes(context, estimates)))


def replaced_share(replaced: int, rows: int, confidence: float) -> Estimate:
    """Return the share of rows with other features than the original, with its exact interval."""
    low, high = clopper_pearson(replaced, rows, 1 - confidence)
    return Estimate.interval(
        "synthetic.replaced_share",
        "Share of rows with synthetic features",
        replaced / rows,
        (float(low), float(high)),
        confidence,
        unit="proportion",
        n=rows,
        count=replaced,
        method="rows whose released features differ from the original ones, Clopper–Pearson",
        assumptions=("each row's features are replaced independently of the others",),
        reference="Busa-Fekete et al. (2023), Mechanism 2",
    )


def _notes(context: AuditContext, estimates: tuple[Estimate, ...]) -> Iterator[Note]:
    values = {estimate.id: estimate for estimate in estimates}
    claim, share = context.claim, values["synthetic.replaced_share"]
    if isinstance(claim, SyntheticFeatures) and share.high is not None and share.high < claim.noise:
        yield Note.warning(
            AUDIT_ID,
            "Fewer rows have other features than the declared λ says. Synthetic rows that equal "
            "the true row by chance count as kept, which happens often where all columns have few "
            "values.",
        )
    if isinstance(claim, SyntheticFeatures) and share.low is not None and share.low > claim.noise:
        yield Note.warning(
            AUDIT_ID,
            "More rows have other features than the declared λ says: more were replaced, or kept "
            "rows were changed as well, for instance rounded. The numbers on synthetic rows then "
            "cover those rows too.",
        )
    if values["synthetic.own_row_share"].value > 0.5:
        yield Note.warning(
            AUDIT_ID,
            "Synthetic features are nearer to the very row that they replace than to other "
            "replaced rows: they were not drawn independently of it.",
        )
    # The share shows the same, but for few pairs it is rounded down, even to below one half.
    seen = values.get("synthetic.training_epsilon_lower")
    if seen is not None and seen.value > 0:
        yield Note.warning(
            AUDIT_ID,
            "Synthetic rows are nearer to audited rows than to held-out ones more often than "
            "chance explains: if both are rows of one population, their generator has seen audited "
            "rows. The guarantee of double randomized response assumes that it has not, or that "
            "its training had a privacy budget of its own.",
        )
    if seen is None:
        yield Note.info(
            AUDIT_ID,
            "Whether the generator has seen the audited rows was not tested: that needs held-out "
            "rows of the same population. Exact copies alone prove nothing where rows repeat.",
        )
    if claim.traits.features == "unknown":
        yield Note.info(
            AUDIT_ID,
            "No mechanism is declared; rows whose features differ were taken as synthetic ones.",
        )
