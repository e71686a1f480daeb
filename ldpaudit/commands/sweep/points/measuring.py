"""One point of a sweep: simulate, audit, learn, test."""

from dataclasses import dataclass
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
from ldpaudit.commands.utility.scores import Utility, utility
from ldpaudit.datasets import declare, read_release
from ldpaudit.datasets.reading import ReadReport
from ldpaudit.mechanisms.coding import DeclaredCoding
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.numeric_labels import NumericView
from ldpaudit.pipeline import run_audit
from ldpaudit.policy import Policy, default_policy
from ldpaudit.randomness import child_generator, seed_from
from ldpaudit.release import Declaration
from ldpaudit.result import AuditResult, Estimate, Note, Verdict

_DECLARED_ONLY: Final = "the declared ε lies above what the policy allows"


@dataclass(frozen=True)
class Measured:
    """What one simulated release came to.

    Attributes
    ----------
    point : Point
    epsilon : float or None
        ε of the mechanism in nats, exact.
    noise : float or None
        λ, for mechanisms that have one.
    verdict : {"pass", "fail", "inconclusive"}
    reason : str
        The verdict in one sentence.
    estimates : tuple of Estimate
        Of the audit.
    test : Estimate
        The learner's score on rows held out.
    correction : str
        What its loss was corrected by.
    result : AuditResult
        The whole audit.
    """

    point: Point
    epsilon: float | None
    noise: float | None
    verdict: Verdict
    reason: str
    estimates: tuple[Estimate, ...]
    test: Estimate
    correction: str
    result: AuditResult

    def stored(self) -> dict[str, Any]:
        """Return what the point's file holds."""
        own = self.point
        return {
            "mechanism": own.mechanism,
            "parameter": own.parameter,
            "value": own.value,
            "repeat": own.repeat,
            "epsilon": self.epsilon,
            "lambda": self.noise,
            "verdict": self.verdict,
            "sentence": self.reason,
            "test": self.test.model_dump(),
            "correction": self.correction,
            "result": self.result.model_dump(),
        }


def measure(
    tables: SweepTables, point: Point, policy: Policy | None, fitted: FittedGenerator | None
) -> Measured:
    """Simulate a release, audit it as ``ldpaudit run`` would, and learn from it.

    Raises
    ------
    LdpAuditError
        One line about why the point cannot be measured.
    """
    request = tables.request
    made = simulate(tables, point, fitted)
    reading = _reading(tables, made.table, made.mechanism, synthetic_pool(tables, point, fitted))
    plan = plan_of(request, seed_from(child_generator(made.seed, "audit")), threads=1)
    held_to, beyond = _policy_for(policy, made.mechanism)
    result = run_audit(
        reading.release,
        plan,
        held_to,
        only=request.only,
        skip=request.skip,
        command="ldpaudit sweep …",
        notes=tuple(Note(audit="reading", text=text) for text in reading.warnings),
    )
    learnt = _score(tables, reading, policy, made.seed)
    return Measured(
        point,
        made.mechanism.epsilon,
        _noise(made.mechanism),
        "fail" if beyond else result.verdict,
        f"Violation found: {_DECLARED_ONLY}." if beyond else result.sentence,
        result.estimates,
        learnt.estimate,
        learnt.correction.name or "none",
        result,
    )


def _noise(mechanism: Mechanism) -> float | None:
    """Return λ of a mechanism that can be stated by it."""
    stated = "lambda" in mechanism.traits.stated_by
    return mechanism.parametrisations().get("lambda") if stated else None


def reference(tables: SweepTables, point: Point, policy: Policy | None) -> Estimate:
    """Return the score of a learner that is given the true labels.

    Parameters
    ----------
    tables : SweepTables
    point : Point
        Any: it tells how labels are coded.
    policy : Policy or None
        States the confidence.
    """
    mechanism = mechanism_at(tables, point)
    claim = Declaration(mechanism.name, dict(mechanism.declaration()), "api")
    table = declare(true_table(tables), claim, tables.request.label)
    reading = _reading(tables, table, mechanism, None, true=True)
    return _score(tables, reading, policy, tables.seed, true=True).estimate


class _TrueCoding(DeclaredCoding):
    """The coding of true numbers, which need not be among the mechanism's outputs."""

    def view(self, rows: int) -> NumericView | None:
        """Return the coding of true labels for both."""
        view = super().view(rows)
        return None if view is None else NumericView(view.classes, view.classes)


def _reading(
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
        coding=_TrueCoding if true else DeclaredCoding,
    )


def _policy_for(policy: Policy | None, mechanism: Mechanism) -> tuple[Policy | None, bool]:
    """Return the policy that a point is held to, and whether its declared ε breaks it already.

    A claim about a mechanism that classes and ε describe is tested on the release; of any other
    one a policy can only say how large its declared ε may be.
    """
    if policy is None or policy.claim is None or policy.claim.epsilon is None:
        return policy, False
    limit, own = policy.claim.epsilon * (1 + 1e-9), mechanism.epsilon
    if own is None or own <= limit:
        return policy, False
    return policy.model_copy(update={"claim": None}), True


def _score(
    tables: SweepTables,
    reading: ReadReport,
    policy: Policy | None,
    seed: int,
    *,
    true: bool = False,
) -> Utility:
    assert reading.test is not None
    request = tables.request
    kind: ModelKind = "network" if request.learner == "network" else "logistic"
    learner = Learner(kind, request.device, true)
    level = (policy or default_policy()).audit.confidence
    rng = child_generator(seed, "sweep", "learner")
    return utility(reading.release, reading.test, learner, level, rng)
