"""Where each built-in audit is, by its id; nothing is imported for it."""

from collections.abc import Mapping
from typing import Final

AUDITS: Final[Mapping[str, str]] = {
    "assumptions": "ldpaudit.audits.assumptions.audit:AssumptionsAudit",
    "mechanism": "ldpaudit.audits.mechanism.audit:MechanismAudit",
    "instance-loss": "ldpaudit.audits.instance_loss.audit:InstanceLossAudit",
    "label-inference": "ldpaudit.audits.label_inference.audit:LabelInferenceAudit",
    "numeric-inference": "ldpaudit.audits.numeric_inference:NumericInferenceAudit",
    "observational": "ldpaudit.audits.observational.audit:ObservationalAudit",
    "aggregates": "ldpaudit.audits.aggregates:AggregatesAudit",
    "renyi": "ldpaudit.audits.renyi.audit:RenyiAudit",
    "synthetic": "ldpaudit.audits.synthetic:SyntheticAudit",
    "seeds": "ldpaudit.audits.seeds:SeedsAudit",
    "power": "ldpaudit.audits.power:PowerAudit",
}
"""The built-in audits in the order in which they run; imported when they do."""

OF_COLUMNS: Final[Mapping[str, str]] = {
    "companions": "ldpaudit.audits.person.guessing:OtherColumnsAudit",
}
"""Those of one of several private columns, besides."""
OF_SEVERAL: Final[Mapping[str, str]] = {"person": "ldpaudit.audits.person.audit:PersonAudit"}
"""Those of several columns or releases of the same people together."""
BUILT_IN: Final = frozenset().union(AUDITS, OF_COLUMNS, OF_SEVERAL, ("columns",))
"""The names that no audit of others may have."""
