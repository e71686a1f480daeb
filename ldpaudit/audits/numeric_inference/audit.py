"""Numeric labels: how near an attacker's guess comes to a person's true number.

The attacker knows the mechanism, the labels of other people and a model of the features; the
likelihood of the released number is exact. Every attack is fitted on one half of the rows and
scored on the other, both ways, and is compared with guessing without the release: from the labels
of other people alone, and with the features too.
"""

from typing import Final

from ldpaudit.attacks.numeric.guesses import ATTACKS, REFERENCES, NumericAttacker
from ldpaudit.attacks.numeric.posterior import LabelGrid
from ldpaudit.attacks.numeric.scoring import Values, measures, row_values
from ldpaudit.audits.assumptions.standing import as_it_stands
from ldpaudit.audits.interface import AuditContext, Counts, Need
from ldpaudit.audits.models import half_model
from ldpaudit.audits.numeric_inference.estimates import (
    NumericRun,
    best_estimates,
    range_estimate,
    run_estimates,
)
from ldpaudit.audits.part import one_row_of_each_group
from ldpaudit.errors import InsufficientDataError
from ldpaudit.mechanisms.interface import NumericMechanism
from ldpaudit.result import Finding

MIN_ROWS: Final = 40
_MOST_ROWS: Final = 100_000
"""Of each half, a random sample of so many rows is scored."""


class NumericInferenceAudit:
    """Runs every attack on numeric labels and compares it with its references."""

    id = "numeric-inference"
    counts: Counts = "rows"
    needs: tuple[Need, ...] = ("truth", "labels", "rows")

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why it does not apply, None where it does."""
        if context.release.numeric is None:
            return "the declared mechanism is not one on numbers"
        return None

    def run(self, context: AuditContext) -> Finding:
        """Run it; with fewer than 40 rows raise InsufficientDataError."""
        if len(context.release) < MIN_ROWS:
            raise InsufficientDataError(f"Attacks on numbers need at least {MIN_ROWS} rows.")
        if context.guesses is None:  # A comparison pairs guesses row by row: it asks all rows.
            context = one_row_of_each_group(context)
        folds, grids = zip(*(_fold(context, half) for half in (0, 1)), strict=True)
        width, confidence = grids[0].width, context.plan.confidence
        every = measures(width, grids[0].complete)
        titles = {**REFERENCES, **ATTACKS}
        runs = [NumericRun(n, titles[n], tuple(fold[n] for fold in folds)) for n in folds[0]]
        attacks = [run for run in runs if run.name in ATTACKS]
        best, bounds = best_estimates(attacks, every, confidence)
        estimates = [e for run in runs for e in run_estimates(run, every, confidence)]
        found = Finding(estimates=(range_estimate(width), *best, *estimates), bounds=bounds)
        return as_it_stands(context, found)


def _fold(context: AuditContext, half: int) -> tuple[dict[str, Values], LabelGrid]:
    """Fit the attacker on ``half`` and score it on the other."""
    labels, claim = context.release.numeric, context.claim
    assert labels is not None
    assert isinstance(claim, NumericMechanism)
    assert labels.truth is not None
    names = "numeric-inference", "rows", str(half)
    others = context.sample(context.half(1 - half), _MOST_ROWS, *names)
    context.progress.step("attacking numeric labels")
    coding = labels.view.classes
    grid = LabelGrid.fit(claim, coding, labels.truth[context.half(half)])
    features = context.release.features.take(others)
    posterior = half_model(context, "truth", half).predict(features)
    guesses = NumericAttacker(claim, grid, coding).guess(labels.released[others], posterior)
    truth = labels.truth[others]
    values = row_values(guesses, truth, coding.codes(truth), grid.width, grid.rounding)
    if context.guesses is not None:
        for name in ATTACKS:
            context.guesses.record_values(name, others, values[name], context.halves())
    return values, grid
