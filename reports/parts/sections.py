"""The parts of a result's page in order; a section without a part of its own gets the default."""

from collections.abc import Callable
from typing import Final

from ldpaudit.reports.parts.default import default_part
from ldpaudit.reports.parts.instance_loss import loss_part
from ldpaudit.reports.parts.label_inference import attacks_part
from ldpaudit.reports.parts.mechanism import mechanism_part
from ldpaudit.reports.parts.numeric_inference import numbers_part
from ldpaudit.reports.parts.part import Part, Section
from ldpaudit.reports.parts.power import power_part
from ldpaudit.reports.parts.renyi import renyi_part
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.reports.text.wording import audit_name
from ldpaudit.result import AuditResult

_PARTS: Final[dict[str, Callable[[Section], Part]]] = {
    "mechanism": mechanism_part,
    "numeric-inference": numbers_part,
    "instance-loss": loss_part,
    "label-inference": attacks_part,
    "renyi": renyi_part,
    "power": power_part,
}
"""Sections with pictures and words of their own."""
_ORDER: Final = (
    "person",
    "mechanism",
    "others",
    "numeric-inference",
    "aggregates",
    "instance-loss",
    "label-inference",
    "observational",
    "renyi",
    "synthetic",
    "columns",
)
"""Any other section comes after these, and the power last."""
_INTROS: Final = {
    "assumptions": "Bounds of ε need noise of its own for each row, labels that depend on nothing "
    "but the true label, and features that were not computed from the released label. Each is "
    "tested; bounds leave out the columns, and all but one of the rows, for which it fails.",
    "observational": "An attacker sees features and released label, is shown either the true label "
    "or one redrawn from the features, and guesses which it is. ε limits how often the guess is "
    "right, even if the mechanism uses the features. Bounds are certified among rows with equal "
    "features and for canaries; with a model of the label they are estimated.",
    "aggregates": "Labels were released as sums over bags. An attacker who knows what the features "
    "reveal guesses every label of a bag from its sum. Bags are independent but rows are not, so "
    "every interval counts bags.",
    "columns": "Noise on the label hides nothing that another column tells, and none of it hides "
    "who somebody is. Counted here are columns that tell the label by themselves, or by a row near "
    "by, and columns that may lead back to a person; and whether the order of the rows tells "
    "labels.",
    "person": "Several private columns of a person add up, and so do releases with new noise; "
    "answers that are remembered do not. ε of everything is bounded by the bounds of each, added "
    "up, and by all answers as one; the test of independence asks whether noise was drawn as "
    "declared. The vote guesses a label by what most releases say.",
    "others": "An attacker who guesses one private column also sees the noisy others. Columns are "
    "correlated, so these tell something of it, too: at most what their own ε allow.",
    "synthetic": "Features were replaced by synthetic ones. They should look like true rows, but "
    "be no nearer to the row that they replace, or to audited rows, than to any other: nearer ones "
    "reveal true rows.",
}
_UNKNOWN: Final = "What this audit measured, each number with its kind and level."


def all_parts(result: AuditResult, printer: Printer) -> tuple[Part, ...]:
    """Return the parts that hold numbers, in the order of the page."""
    named = [part.section for part in (*result.estimates, *result.curves, *result.histograms)]
    first = [name for name in _ORDER if name in named]
    chosen = [name for name in dict.fromkeys((*first, *named, "mechanism")) if name != "power"]
    parts = (_part(Section(name, result, printer)) for name in (*chosen, "power"))
    return tuple(part for part in parts if part.figures or part.quantities or part.tables)


def _part(section: Section) -> Part:
    if section.name in _PARTS:
        return _PARTS[section.name](section)
    intro = _INTROS.get(section.name, _UNKNOWN)
    title = audit_name(section.name) or "Further numbers"
    return default_part(section, title, intro)
