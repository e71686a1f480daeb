"""Where each built-in audit is, by its id; nothing is imported for it."""

from collections.abc import Mapping
from typing import Final

# The built-in audits in the order in which they run; imported when they do.
AUDITS: Final[Mapping[str, str]] = {
    "assumptions": "ldpaudit.audits.assumptions.audit:AUDIT",
    "mechanism": "ldpaudit.audits.mechanism.audit:AUDIT",
    "instance-loss": "ldpaudit.audits.instance_loss.audit:AUDIT",
    "label-inference": "ldpaudit.audits.label_inference.audit:AUDIT",
    "numeric-inference": "ldpaudit.audits.numeric_inference:AUDIT",
    "observational": "ldpaudit.audits.observational.audit:AUDIT",
    "aggregates": "ldpaudit.audits.aggregates:AUDIT",
    "renyi": "ldpaudit.audits.renyi.audit:AUDIT",
    "synthetic": "ldpaudit.audits.synthetic:AUDIT",
    "seeds": "ldpaudit.audits.seeds:AUDIT",
    "power": "ldpaudit.audits.power:AUDIT",
}

# The names that no audit of another package may have: "companions" and "person" are audits of
# several columns or releases, and "columns" is the section of what single columns explain.
BUILT_IN: Final = frozenset().union(AUDITS, ("columns", "companions", "person"))
