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

# Those of one of several private columns, besides.
OF_COLUMNS: Final[Mapping[str, str]] = {
    "companions": "ldpaudit.audits.person.guessing:OTHER_COLUMNS",
}
# Those of several columns or releases of the same people together.
OF_SEVERAL: Final[Mapping[str, str]] = {"person": "ldpaudit.audits.person.audit:AUDIT"}
# The names that no audit of others may have.
BUILT_IN: Final = frozenset().union(ORDER, OF_COLUMNS, OF_SEVERAL, ("columns",))


def built_in_audits() -> dict[str, str]:
    """Return the audits of this installation in their order, with the place of each."""
    registered = {name: point.value for name, point in ours("audit").items()}
    places = {**CORE, **registered}
    return {name: places[name] for name in ORDER if name in places}
