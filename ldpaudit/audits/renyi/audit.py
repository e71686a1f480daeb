"""Rényi divergences: how far apart the released rows of two true labels are.

Label differential privacy with conditional features (Definition 4.3) asks that D_α between the
released rows of any two true labels be at most ε. That is bounded from below here for any
mechanism, and estimated. For double randomized response the distance of synthetic from true
features is measured as well, and what it implies.
"""

from collections.abc import Iterator

from ldpaudit.audits.instance_loss.neighbourhoods import has_features
from ldpaudit.audits.interface import AuditContext, Counts, Need
from ldpaudit.audits.renyi.curves import AUDIT_ID
from ldpaudit.audits.renyi.release import release_finding
from ldpaudit.audits.renyi.synthetic import SyntheticOutcome, double_rr_finding, synthetic_outcome
from ldpaudit.errors import InsufficientDataError
from ldpaudit.result import Finding, Note, merged

# With fewer rows neither half has enough to fit a model and to bound a divergence.
_MIN_ROWS = 400


class RenyiAudit:
    """Bounds and estimates Rényi divergences between released rows of two true labels."""

    id = AUDIT_ID
    counts: Counts = "people"
    needs: tuple[Need, ...] = ("truth", "labels", "rows")

    def unavailable(self, context: AuditContext) -> str | None:  # noqa: ARG002
        """Return None: true labels are all that it needs."""
        return None

    def run(self, context: AuditContext) -> Finding:
        """Run it.

        Raise InsufficientDataError with fewer than 400 rows, or if fewer than two true labels have
        enough rows.
        """
        if len(context.release) < _MIN_ROWS:
            raise InsufficientDataError(f"The Rényi audit needs at least {_MIN_ROWS} rows.")
        release, synthetic = release_finding(context), synthetic_outcome(context)
        compared = synthetic or SyntheticOutcome(Finding())
        double_rr = double_rr_finding(context, compared.estimate, compared.labelled)
        notes = Finding(notes=tuple(_notes(context, synthetic is not None)))
        return merged([release, compared.finding, double_rr, notes])


def _notes(context: AuditContext, compared: bool) -> Iterator[Note]:
    traits = context.claim.traits
    if traits.features == "unchanged" and has_features(context):
        yield Note.info(
            AUDIT_ID,
            "The features are released unchanged, so the claim bounds no Rényi divergence "
            "between released rows of two labels (Theorems 6.1 and 6.4 of Busa-Fekete et al. "
            "2023): where features settle the label it is infinite, however small ε is.",
        )
    if traits.features == "partly synthetic" and not compared:
        yield Note.info(
            AUDIT_ID,
            "How far synthetic features are from true ones was not measured: that needs the "
            "original features (--original) or the synthetic table (--synthetic).",
        )
    if traits.label_depends_on_features:
        yield Note.info(
            AUDIT_ID,
            "The model behind the bounds takes the released label to depend on the true label "
            "alone. Where it does not, the bounds remain valid but are weaker.",
        )
