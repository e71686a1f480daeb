"""Measuring one point: simulate, audit, learn, test."""

from typing import Any, Final

from ldpaudit.api import plan_of
from ldpaudit.commands.privatize.features.generated_rows import FittedGenerator
from ldpaudit.commands.sweep.grid import Point
from ldpaudit.commands.sweep.points.simulation import (
    mechanism_at,
    simulate,
    synthetic_pool,
    true_table,
)
from ldpaudit.commands.sweep.points.tables import SweepTables
from ldpaudit.commands.utility import ModelKind
from ldpaudit.commands.utility.learner import Learner
from ldpaudit.commands.utility.scores import EVERY, Utility, utility
from ldpaudit.datasets import declare, read_release
from ldpaudit.datasets.reading import ReadReport
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.mechanisms.coding import DeclaredCoding
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.numeric_labels import NumericView
from ldpaudit.pipeline import run_audit
from ldpaudit.randomness import child_generator, seed_from
from ldpaudit.release import Declaration
from ldpaudit.result import Estimate, Note

_DECLARED_ONLY: Final = "the declared ε lies above what the policy allows"


def measure(
    tables: SweepTables, point: Point, policy: Policy | None, fitted: FittedGenerator | None
) -> dict[str, Any]:
    """Simulate a release, audit it as ``ldpaudit run`` would, and learn from it.

    Returns
    -------
    mapping
        What the point's file holds: exact ε in nats and λ, the verdict with its sentence, the
        learner's score on rows held out with the correction of its loss, and the whole audit.

    Raises
    ------
    LdpAuditError
        One line about why the point cannot be measured.
    """
    request = tables.request
    drawn = simulate(tables, point, fitted)
    mechanism, pool = drawn.mechanism, synthetic_pool(tables, point, fitted)
    reading = reading_of(tables, drawn.table, mechanism, pool)
    plan = plan_of(request, seed_from(child_generator(drawn.seed, "audit")), threads=1)
    applied, beyond = _policy_for(policy, mechanism)
    result = run_audit(
        reading.release,
        plan,
        applied,
        only=request.only,
        skip=request.skip,
        command="ldpaudit sweep …",
        notes=tuple(Note(audit="reading", text=text) for text in reading.warnings),
    )
    learnt = score(tables, reading, policy, drawn.seed)
    by_noise = "lambda" in mechanism.traits.stated_by
    return {
        "mechanism": point.mechanism,
        "parameter": point.parameter,
        "value": point.value,
        "repeat": point.repeat,
        "epsilon": mechanism.epsilon,
        "lambda": mechanism.parametrisations().get("lambda") if by_noise else None,
        "verdict": "fail" if beyond else result.verdict,
        "decision": "do not publish" if beyond else result.decision,
        "sentence": f"Violation found: {_DECLARED_ONLY}." if beyond else result.sentence,
        "test": learnt.estimate.model_dump(),
        "correction": learnt.correction.name or "none",
        "result": result.model_dump(),
    }


def reference(tables: SweepTables, point: Point, policy: Policy | None) -> Estimate:
    """Return the score of a learner that is given the true labels.

    Any ``point`` will do: it decides how labels are coded. The ``policy`` states the confidence.
    """
    reading = truth_reading(tables, mechanism_at(tables, point))
    return score(tables, reading, policy, tables.seed, true=True).estimate


def truth_reading(tables: SweepTables, mechanism: Mechanism) -> ReadReport:
    """Return the true labels as a release, coded as those of a mechanism."""
    claim = Declaration(mechanism.name, dict(mechanism.declaration()), "api")
    table = declare(true_table(tables), claim, tables.request.label)
    return reading_of(tables, table, mechanism, None, true=True)


class _TrueCoding(DeclaredCoding):
    """The coding of true numbers, which need not be among the mechanism's outputs."""

    def view(self, rows: int) -> NumericView | None:
        """Return the view whose released labels are coded like true ones."""
        view = super().view(rows)
        return None if view is None else NumericView(view.classes, view.classes)


def reading_of(
    tables: SweepTables, released: Any, mechanism: Mechanism, synthetic: Any, *, true: bool = False
) -> ReadReport:
    """Return a simulated release as an insider reads it; a ``true`` one holds the true labels."""
    label = tables.request.label
    double = mechanism.traits.features == "partly synthetic" and synthetic is not None
    return read_release(
        released,
        label=label,
        truth=tables.training.select([label]),
        original=tables.training if double else None,
        synthetic=synthetic if double else None,
        test=tables.test,
        files=tables.request,
        coding=_TrueCoding if true else DeclaredCoding,
    )


def _policy_for(policy: Policy | None, mechanism: Mechanism) -> tuple[Policy | None, bool]:
    """Return the policy for a point, and whether the declared ε alone violates it.

    A claim about a mechanism that classes and ε describe is tested on the release; for any other
    a policy can only limit the declared ε.
    """
    claim = None if policy is None else policy.of_all().claim
    if policy is None or claim is None or claim.epsilon is None:
        return policy, False
    if mechanism.epsilon is None or mechanism.epsilon <= claim.epsilon * (1 + 1e-9):
        return policy, False
    return policy.model_copy(update={"claim": None}), True


def score(
    tables: SweepTables,
    reading: ReadReport,
    policy: Policy | None,
    seed: int,
    *,
    true: bool = False,
    level: float | None = None,
    reported: slice = EVERY,
) -> Utility:
    """Return how a model that is trained on a simulated release does on the test rows.

    ``level``: the interval's, where it is not the policy's; ``reported``: the rows that it is of.
    """
    assert reading.test is not None
    request = tables.request
    kind: ModelKind = "network" if request.learner == "network" else "logistic"
    learner = Learner(kind, request.device, true)
    level = (policy or default_policy()).audit.confidence if level is None else level
    rng = child_generator(seed, "sweep", "learner")
    return utility(reading.release, reading.test, learner, level, rng, reported)
