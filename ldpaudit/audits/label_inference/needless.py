"""Attacks that cannot be stronger than those that ran, by more than chance decides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from ldpaudit.attacks.interface import Attack
from ldpaudit.attacks.scoring.measures import ACCURACY, average, lower_bound, upper_bound
from ldpaudit.audits.interface import AuditContext
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import FloatArray

if TYPE_CHECKING:
    from ldpaudit.audits.label_inference.runs import AttackRun

_PUBLIC: Final = "bayes"
"""The attack that others only feed with more rows."""
_NEAR: Final = 0.002
"""Nearer than this, and nearer than the interval is wide, is near enough."""
_CERTAIN: Final = (
    "an attack before it is wrong so rarely that no other could be better by more than chance"
)
_OPTIMAL: Final = (
    "more rows to learn from would not help: 'bayes' comes, by estimate, so near to the best "
    "attack on the claimed channel that chance decides between them"
)


@dataclass(frozen=True)
class Needless:
    """Says why an attack need not run.

    Attributes
    ----------
    confidence : float
        Of intervals.
    optimum : float or None
        The estimated accuracy of the best attack on the claimed channel; None where it has none.

    Notes
    -----
    The rule looks at scores. What is said of the strongest attack stays valid, for it is corrected
    for all attacks that could have run.
    """

    confidence: float
    optimum: float | None

    @classmethod
    def of(
        cls, context: AuditContext, channel: Channel | None, posteriors: Sequence[FloatArray]
    ) -> "Needless":
        """Return the rule, from P(y | x) of the held-out rows, float64 of shape (rows, k)."""
        optimum = None
        if channel is not None:
            each = [channel.informed_accuracy(posterior) for posterior in posteriors]
            optimum = float(np.concatenate(each).mean())
        return cls(context.plan.confidence, optimum)

    def __call__(self, attack: Attack, runs: "Sequence[AttackRun]") -> str | None:
        """Return why the attack need not run after these; None where it is to run.

        Only attacks on the whole release are left out: the others are the ones that two releases
        are compared by.
        """
        if not attack.learns_from_asked:
            return None
        if any(run.uses_release and self._reaches(1.0, run) for run in runs):
            return _CERTAIN
        if self.optimum is None or not getattr(attack, "learns_as_bayes", False):
            return None
        near = any(run.name == _PUBLIC and self._reaches(self.optimum, run) for run in runs)
        return _OPTIMAL if near else None

    def _reaches(self, accuracy: float, run: "AttackRun") -> bool:
        tail = (1 - self.confidence) / 2
        ends = lower_bound(run.folds, ACCURACY, tail), upper_bound(run.folds, ACCURACY, tail)
        missed = accuracy - average(run.folds, ACCURACY.value)
        return missed <= min((ends[1] - ends[0]) / 2, _NEAR)
