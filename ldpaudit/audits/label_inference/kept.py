"""Finished attacks in the folder of ``--resume``: counts of right guesses, none of one row."""

from collections.abc import Callable
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

from ldpaudit.attacks.scoring.fold import FoldScore
from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.intervals.ranking import RateInterval

if TYPE_CHECKING:
    from ldpaudit.audits.label_inference.runs import AttackRun


def kept_run(
    context: AuditContext, name: str, kind: "type[AttackRun]", run: Callable[[], "AttackRun"]
) -> "AttackRun":
    """Return how an attack did: as kept by an earlier run, else by running it.

    Where guesses of rows are wanted too, which are never kept, it runs.
    """
    key = f"label-inference/{name}"
    part = None if context.guesses is not None else context.finished.get(key)
    if isinstance(part, dict) and part.keys() == {field.name for field in fields(kind)}:
        return kind(**part | {"folds": tuple(_fold(fold) for fold in part["folds"])})
    done = run()
    if context.guesses is None:
        context.finished.put(key, asdict(done))
    return done


def _fold(part: dict[str, Any]) -> FoldScore:
    score = FoldScore(**part)
    return replace(score, rates=tuple(RateInterval(**rate) for rate in part["rates"]))
