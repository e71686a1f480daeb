"""Where each audit of this package is, by its id; nothing is imported for it."""

from collections.abc import Mapping
from typing import Final

from ldpaudit.plugins import ours

# The order in which the audits of this package run.
ORDER: Final = (
    "assumptions",
    "mechanism",
    "instance-loss",
    "label-inference",
    "numeric-inference",
    "observational",
    "aggregates",
    "renyi",
    "synthetic",
    "seeds",
    "power",
)
# Those of the core; they are imported when they run. The others are registered as those of other
# packages are.
CORE: Final[Mapping[str, str]] = {
    "assumptions": "ldpaudit.audits.assumptions.audit:AUDIT",
    "mechanism": "ldpaudit.audits.mechanism.audit:AUDIT",
    "instance-loss": "ldpaudit.audits.instance_loss.audit:AUDIT",
    "label-inference": "ldpaudit.audits.label_inference.audit:AUDIT",
    "numeric-inference": "ldpaudit.audits.numeric_inference:AUDIT",
    "renyi": "ldpaudit.audits.renyi.audit:AUDIT",
    "seeds": "ldpaudit.audits.seeds:AUDIT",
    "power": "ldpaudit.audits.power:AUDIT",
}

# The names that no audit of another package may have: "companions" and "person" are audits of
# several columns or releases, and "columns" is the section of what single columns explain.
BUILT_IN: Final = frozenset().union(ORDER, ("columns", "companions", "person"))


def built_in_audits() -> dict[str, str]:
    """Return the audits of this installation in their order, with the place of each."""
    registered = {name: point.value for name, point in ours("audit").items()}
    places = {**CORE, **registered}
    return {name: places[name] for name in ORDER if name in places}
