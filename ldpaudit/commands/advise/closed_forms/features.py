"""What the features alone tell, and which columns to leave out so that they tell less.

The search fits small models on some of the rows that teach, drops one column at a time, the one
without which least is told, and looks at rows that candidates are compared on. What it did is
reported on rows that it has not seen.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.attacks.models.posterior import fit_posterior
from ldpaudit.attacks.scoring.fold import FoldScore, score_fold
from ldpaudit.attacks.scoring.measures import AUC, BALANCED_ACCURACY, Measure
from ldpaudit.commands.advise.clock import Clock
from ldpaudit.commands.advise.closed_forms.leakage import Held, Leakage
from ldpaudit.commands.advise.closed_forms.limits import Limits
from ldpaudit.commands.advise.closed_forms.study import Rows, Study
from ldpaudit.commands.privatize.columns.exact import DecidingColumns
from ldpaudit.estimators.loss.instance_loss import mean_loss
from ldpaudit.modelling.association import association
from ldpaudit.release import FloatArray, IndexArray
from ldpaudit.result import Estimate

REVEAL: Final = "features-reveal-label"
IDENTIFIERS: Final = "identifiers"
_MOST_ROWS: Final = 4_000
_LOOKED: Final = 8
"""Columns that are tried in each round: those that go most clearly with the label."""
_SHARE: Final = 0.4
"""The share of the time that the search may take."""
_MARGIN: Final = 0.97


@dataclass(frozen=True)
class Told:
    """What features alone tell.

    Attributes
    ----------
    auc, balanced : float
        As ``ldpaudit run`` scores an attacker who sees the features alone.
    accuracy : float
    exceeding : float or None
        The share of people who lose the policy's τ by the features alone; None where nothing limits
        that.
    """

    auc: float
    balanced: float
    accuracy: float
    exceeding: float | None

    def stretch(self, limits: Limits, reveal: float | None) -> float:
        """Return how far beyond a limit the worst is: at most 1 where all are kept."""
        worst = [0.0]
        if reveal is not None:
            worst += [self.auc / reveal, self.balanced / reveal]
        for measure, value in (("accuracy", self.accuracy), ("exceedance", self.exceeding)):
            limit = next((one for one in limits.limits if one.measure == measure), None)
            if limit is not None and value is not None:
                worst.append(value / max(limit.most(0.0), 1e-9))
        return max(worst)


def features_alone(rows: Rows, prior: FloatArray, loss: float | None) -> Told:
    """Return what an attacker who sees the features alone makes of rows."""
    fold = _scored(rows, 0.05)
    exceeding = None
    if loss is not None:
        exceeding = float((mean_loss(rows.posterior, prior, None) >= loss - 1e-9).mean())
    right = fold.correct / fold.n
    return Told(AUC.value(fold), BALANCED_ACCURACY.value(fold), right, exceeding)


def _scored(rows: Rows, alpha: float) -> FoldScore:
    rng = np.random.default_rng(0)  # Ranks a sample of many rows.
    return score_fold(rows.truth, rows.posterior, None, rate_alpha=alpha, rng=rng)


def told_estimates(study: Study, level: float) -> tuple[Estimate, ...]:
    """Return what the features alone tell of the rows that no choice has seen."""
    fold = _scored(study.reported, (1 - level) / 2)
    return tuple(_estimate(fold, measure, level) for measure in (BALANCED_ACCURACY, AUC))


def _estimate(fold: FoldScore, measure: Measure, level: float) -> Estimate:
    tail, value = (1 - level) / 2, measure.value(fold)
    low, high = measure.lower(fold, tail), measure.upper(fold, tail)
    return Estimate.interval(
        f"advice.features_{measure.name}",
        f"{measure.title} of an attacker who sees the features alone",
        value,
        (min(low, value), max(high, value)),
        level,
        section="leakage",
        unit="proportion",
        n=fold.n,
        method=measure.method,
        assumptions=("rows are independent", "the attacker knows other people's true labels"),
    )


def columns_that_name(study: Study) -> tuple[str, ...]:
    """Return the feature columns that may lead back to a person."""
    kept = study.request.keep
    columns = study.release.columns
    return tuple(one.name for one in columns if one.concern is not None and one.name not in kept)


def columns_that_decide(study: Study) -> tuple[str, ...]:
    """Return the feature columns that tell the label in every row: ``privatize`` refuses them."""
    tables = study.tables
    watch = DecidingColumns(tables.features.names, study.request.keep)
    for batch in tables.everything.table.to_batches():
        watch.watch(batch.select(tables.features.names), batch.column(tables.request.label))
    return tuple(watch.found())


def broken(study: Study, limits: Limits) -> tuple[Held, ...]:
    """Return the limits that are broken though nothing is released of the label."""
    floor = Leakage(study, None, 0.0).held(limits)
    return tuple(held for held in floor if not held.passes)


@dataclass(frozen=True, eq=False)
class Search:
    """Looks for columns to leave out, greedily.

    Attributes
    ----------
    study : Study
    limits : Limits
    reveal : float or None
        The largest AUC and balanced accuracy of the features alone; None where nothing limits it.
    clock : Clock
    """

    study: Study
    limits: Limits
    reveal: float | None
    clock: Clock

    @property
    def _loss(self) -> float | None:
        limit = self.limits.of_measure("exceedance")
        return None if limit is None or limit.at is None else limit.at(0.0)

    def now(self) -> Told:
        """Return what the features alone tell, by the models of the study."""
        return features_alone(self.study.compared, self.study.prior, self._loss)

    def columns(self) -> tuple[tuple[str, ...], bool]:
        """Return columns to leave out so that little enough is told, and whether time sufficed."""
        found = tuple(self._one_by_one())
        return found, self.clock.spent < _SHARE * self.clock.seconds

    def _one_by_one(self) -> Iterator[str]:
        left = {one.name: one.arrays for one in self.study.release.columns if one.arrays}
        left = {
            name: arrays for name, arrays in left.items() if name not in self.study.request.keep
        }
        gone: list[int] = []
        while left and self.clock.spent < _SHARE * self.clock.seconds:
            tried = {name: self._without([*gone, *left[name]]) for name in self._worst(left)}
            name = min(tried, key=lambda one: tried[one].stretch(self.limits, self.reveal))
            gone += left.pop(name)
            yield name
            if tried[name].stretch(self.limits, self.reveal) <= _MARGIN:
                return

    def _worst(self, left: dict[str, tuple[int, ...]]) -> list[str]:
        if len(left) <= _LOOKED:
            return list(left)
        scores = self._clarity
        return sorted(left, key=lambda name: -max(scores[place] for place in left[name]))[:_LOOKED]

    @property
    def _clarity(self) -> FloatArray:
        context, rows = self.study.context, self._taught
        return context.once(
            "advise.clarity",
            lambda: association(self.study.release.features.take(rows), self.study.truth[rows]),
        )

    @property
    def _taught(self) -> IndexArray:
        context = self.study.context
        return context.sample(context.half(1), _MOST_ROWS, "advise", "columns")

    def _without(self, arrays: list[int]) -> Told:
        """Return what small models make of the other columns."""
        study, context = self.study, self.study.context
        rows = context.half(0)
        rows = rows[rows < study.parts.rows - study.parts.reported]
        rows = context.sample(rows, _MOST_ROWS, "advise", "looked")
        features, k = study.release.features.without(arrays), len(study.release.classes)
        rng = context.rng("advise", "small")
        taught = self._taught
        model = fit_posterior(features.take(taught), study.truth[taught], k, rng, 1)
        found = Rows(model.predict(features.take(rows)), study.truth[rows])
        return features_alone(found, study.prior, self._loss)
