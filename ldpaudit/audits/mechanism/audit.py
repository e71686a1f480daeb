"""The mechanism: what was claimed, whether the counts agree, and what ε is at least."""

# Exact numbers come from the claim alone. With true labels ε is bounded from below by true against
# released labels, and without (as a cross-check also with them) by the release alone. An audit can
# refute a claim; it cannot prove one. What counts of all rows hide is looked at besides: rare
# classes, and numbers whose digits come through the noise.

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ldpaudit.audits.assumptions.rows import counted
from ldpaudit.audits.interface import AuditContext, BuiltIn, Part, collected
from ldpaudit.audits.mechanism.agreement import agreement_parts
from ldpaudit.audits.mechanism.bounds import bound_parts
from ldpaudit.audits.mechanism.claimed import exact_curves, exact_estimates, labels_in_the_clear
from ldpaudit.audits.mechanism.evidence import (
    insider_evidence,
    outsider_evidence,
    subgroup_evidence,
)
from ldpaudit.audits.mechanism.hidden import lattice_parts, rare_parts
from ldpaudit.audits.models import feature_dependence, one_channel
from ldpaudit.audits.registered import parts_within
from ldpaudit.result import Note


def _parts(context: AuditContext) -> Iterator[Part]:
    yield from exact_estimates(context.claim)
    yield from exact_curves(context.claim)
    yield from labels_in_the_clear(context)
    yield from parts_within("mechanism", context)
    every, context = context, one_channel(context)
    if context.release.strata is not None and context.claim.by_stratum:
        return  # Each stratum is bounded by itself.
    found = collected(
        [
            *agreement_parts(context),
            *rare_parts(context),
            *lattice_parts(context),
            *bound_parts(context),
        ]
    )
    yield found if counted(context).holds else replace(found, bounds={})
    dependent, truth = feature_dependence(context), context.release.truth
    groups, outsider = subgroup_evidence(context), outsider_evidence(context)
    if dependent is not None:
        yield Note.warning("mechanism", f"Counts of labels alone give no bound of ε: {dependent}.")
        return
    one_class = truth is not None and insider_evidence(context) is None
    if context is not every:
        yield Note.warning(
            "mechanism",
            f"Bounds of ε count the {len(context.release):,} rows of the first stage, whose labels "
            "were released without the features. In later stages each row has a channel of its "
            "own: a larger ε in these alone would not be found.",
        )
    if one_class:
        yield Note.warning(
            "mechanism", "True labels give no bound of ε: fewer than two classes occur among them."
        )
    if truth is not None and not one_class and isinstance(groups, str):
        yield Note.info("mechanism", f"Groups of rows were not bounded by themselves: {groups}.")
    if isinstance(outsider, str):
        yield Note.info("mechanism", f"No bound of ε from the release alone: {outsider}.")
    if context.claim.traits.outputs == "unknown":
        yield Note.info(
            "mechanism",
            "No mechanism is declared. The bounds of ε assume that the released label was drawn "
            "from the true label alone; for a mechanism that uses the features they do not hold.",
        )


AUDIT: Final = BuiltIn("mechanism", _parts, needs=())
