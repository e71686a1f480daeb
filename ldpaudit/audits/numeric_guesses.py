"""Numeric labels: how near an attacker's guess comes to a person's true number."""

# The attacker knows the mechanism, the labels of other people and a model of the features; the
# likelihood of the released number is exact. Every attack is fitted on one half of the rows and
# scored on the other, both ways, and is compared with guessing without the release: from the labels
# of other people alone, and with the features too.

from collections.abc import Iterator, Sequence
from typing import Final

from ldpaudit.attacks.numeric import (
    ATTACKS,
    REFERENCES,
    LabelGrid,
    NumericAttacker,
    measures,
    row_values,
)
from ldpaudit.attacks.scoring import Measure, RowValues
from ldpaudit.audits.assumptions.standing import as_it_stands, one_row_of_each_group
from ldpaudit.audits.interface import AuditContext, Part, collected
from ldpaudit.audits.models import half_model
from ldpaudit.audits.scores import Scored, best_bound, score_estimate
from ldpaudit.errors import InsufficientDataError
from ldpaudit.mechanisms.interface import NumericMechanism
from ldpaudit.result import Details, Estimate

MIN_ROWS: Final = 40
_MOST_ROWS_SCORED: Final = 100_000  # Of each half, a random sample of so many rows is scored.
_REFERENCE: Final = "Busa-Fekete et al. (2024), expected attack utility, for numbers"
_GAINS: Final = ("mse_gain", "bin_advantage")
_AGAINST_ITSELF: Final = frozenset(
    {("prior", "mse_gain"), ("prior", "bin_advantage"), ("features-only", "bin_advantage")}
)
_BEST: Final = "Strongest guess of the number"
_CHOSEN: Final = (
    "the strongest of {count} attacks, here {best}: {method}; the {end} end's error probability is "
    "divided by {possible}"
)


def numeric_parts(context: AuditContext) -> Iterator[Part]:
    """Yield the width of the range, and how near each attack comes; the strongest, corrected."""
    if len(context.release) < MIN_ROWS:
        raise InsufficientDataError(f"Attacks on numbers need at least {MIN_ROWS} rows.")
    if context.run.guesses is None:  # A comparison pairs guesses row by row: it asks all rows.
        context = one_row_of_each_group(context)
    folds, grids = zip(*(_fold(context, half) for half in (0, 1)), strict=True)
    every, titles = measures(grids[0].width, grids[0].complete), {**REFERENCES, **ATTACKS}
    runs = [Scored(n, titles[n], tuple(fold[n] for fold in folds)) for n in folds[0]]
    yield Estimate.exact(
        "numeric.range",
        "Width of the declared range",
        grids[0].width,
        unit="label units",
        method="the highest declared label less the lowest",
    )
    yield as_it_stands(context, collected(score_parts(runs, every, context.plan.confidence)))


def _fold(context: AuditContext, half: int) -> tuple[dict[str, RowValues], LabelGrid]:
    """Fit the attacker on ``half`` and score it on the other."""
    labels, claim = context.release.numeric, context.claim.offers(NumericMechanism)
    assert labels is not None
    assert claim is not None
    assert labels.truth is not None
    names = "numeric-inference", "rows", str(half)
    others = context.sample(context.half(1 - half), _MOST_ROWS_SCORED, *names)
    context.progress.step("attacking numeric labels")
    coding = labels.view.classes
    grid = LabelGrid.fit(claim, coding, labels.truth[context.half(half)])
    features = context.release.features.take(others)
    posterior = half_model(context, "truth", half).predict(features)
    guesses = NumericAttacker(claim, grid, coding).guess(labels.released[others], posterior)
    truth = labels.truth[others]
    values = row_values(guesses, truth, coding.codes(truth), grid.width, grid.rounding)
    if context.run.guesses is not None:
        for name in ATTACKS:
            context.run.guesses.record_values(name, others, values[name], context.halves())
    return {name: RowValues(found, len(others)) for name, found in values.items()}, grid


def score_parts(
    runs: Sequence[Scored[RowValues]], every: Sequence[Measure[RowValues]], confidence: float
) -> Iterator[Part]:
    """Yield each measure of its strongest attack, corrected for choosing it, then every score."""
    # The bounds are how strong the strongest is at least, for measures whose large values are
    # strong attacks. All are certified on both sides.
    for measure in every:
        able = [run for run in runs if measure.name in run.folds[0].values]
        attacks = [run for run in able if run.name in ATTACKS]
        stated = Details(reference=_REFERENCE if measure.name in _GAINS else None)
        asked = measure, confidence, len(attacks), _BEST, _CHOSEN, "numeric"
        strongest = best_bound(attacks, *asked, **stated)
        if measure.better > 0:
            yield strongest
        else:
            assert isinstance(strongest.shown, Estimate)
            yield strongest.shown
    for run in runs:
        for measure in every:
            known = measure.name in run.folds[0].values
            if known and (run.name, measure.name) not in _AGAINST_ITSELF:
                stated = Details(reference=_REFERENCE if measure.name in _GAINS else None)
                yield score_estimate(run, measure, confidence, "numeric", **stated)
