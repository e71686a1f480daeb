"""Numbers whose remainders or digits come through the noise, which bins of them would hide."""

from functools import partial

import numpy as np

from ldpaudit.audits.assumptions.rows import counted_rows
from ldpaudit.audits.assumptions.standing import standing
from ldpaudit.audits.assumptions.stated import FEATURE_BLIND, INDEPENDENT
from ldpaudit.audits.epsilon_proofs import LATTICE, LATTICE_SHARE
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.mechanism.evidence import feature_dependence
from ldpaudit.estimators.epsilon.lattice import (
    LatticeEvidence,
    lattice_evidence,
    repeated_numbers,
)
from ldpaudit.mechanisms.interface import NumericMechanism
from ldpaudit.numeric_labels import NumericLabels
from ldpaudit.release import FloatArray
from ldpaudit.result import Estimate, Finding, Note

_ON_STEP = 1e-6
_MOST_REPEATED = 0.01
"""The share of rows with repeated numbers from which a warning is due."""


def lattice_finding(context: AuditContext) -> Finding:
    """Return what remainders and digits reveal, where outputs are seen in bins alone."""
    numbers, claim = context.release.numeric, context.claim
    if (
        numbers is None
        or not numbers.view.outputs.grouped
        or not isinstance(claim, NumericMechanism)
    ):
        return Finding()
    notes = list[Note]()
    if claim.output_values is None and (again := repeated_numbers(_off_steps(claim, numbers))):
        share = again / len(numbers.released)
        if share >= _MOST_REPEATED:
            text = (
                f"{share:.0%} of the rows have a released number, to the last digit, that another "
                "row has too: the noise has few values, and its digits may reveal it. Draw it from "
                "a sampler made for privacy (ldpaudit privatize), or release rounded numbers."
            )
            notes.append(Note.warning("mechanism", text))
    if numbers.truth is None or feature_dependence(context) is not None:
        return Finding(notes=tuple(notes))
    rows = counted_rows(context)
    truth, released = numbers.truth, numbers.released
    if rows is not None:
        truth, released = truth[rows], released[rows]
    found = lattice_evidence(truth, released, context.rng("epsilon", "lattice"))
    if found is None:
        return Finding(notes=tuple(notes))
    alpha = (1 - context.plan.confidence) * LATTICE_SHARE
    bound = found.bounds.strongest(alpha)
    if claim.epsilon is not None and bound.epsilon > claim.epsilon:
        notes.append(Note.warning("mechanism", _what(found)))
    kind, assumptions = standing(context, FEATURE_BLIND, INDEPENDENT)
    estimate = Estimate.lower_bound(
        LATTICE,
        "True labels, remainders of numbers",
        bound.epsilon,
        1 - alpha,
        axis="epsilon",
        unit="nats",
        n=bound.n,
        kind=kind,
        method="the strongest bound from the remainders of true and released numbers (by 2 to 10, "
        "or the digits between labels), chosen on one half of the rows and counted on the other",
        assumptions=assumptions,
        reference="Mironov (2012), for the digits",
    )
    bounds = {LATTICE: partial(_epsilon, found)}
    return Finding((estimate,), notes=tuple(notes), bounds=bounds)


def _off_steps(claim: NumericMechanism, numbers: NumericLabels) -> FloatArray:
    """Return the released numbers that are no outputs of the claimed noise in steps."""
    if claim.output_step is None:
        return numbers.released
    steps = (numbers.released - claim.label_bounds[0]) / claim.output_step
    return np.asarray(numbers.released[np.abs(steps - np.rint(steps)) > _ON_STEP])


def _epsilon(found: LatticeEvidence, alpha: float) -> float:
    return found.bounds.strongest(alpha).epsilon


def _what(found: LatticeEvidence) -> str:
    if found.modulus is None:
        return (
            "The digits of a released number reveal which noise was added: for "
            f"{found.right:.0%} of the rows the true number is read off. The noise takes few "
            "values; draw it from a sampler made for privacy."
        )
    return (
        f"The noise lies on a lattice: the remainder of the true number, divided by "
        f"{found.modulus * found.step:g}, can be read off the released one more often than the "
        "claim allows. Draw noise in steps of the labels."
    )
