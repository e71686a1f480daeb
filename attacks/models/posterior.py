"""Class probabilities given the features, learnt from true or from released labels.

Up to seven parts are fitted on most of the rows and judged on the rest: the class frequencies, a
ridge-penalised multinomial logistic regression, histogram gradient boosting, Gaussian classes, the
nearest rows and, where rows repeat, the counts of identical rows. Where rows repeat, the regression
has a coefficient for every pair of values of two columns; columns of many values are replaced by
what the labels of other rows say about each, and the strongest of them is a part of its own. The
model is their log-linear blend with the weights of least validation log-loss; a single part with a
temperature is a special case.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from ldpaudit.attacks.interface import Model
from ldpaudit.attacks.models.blend import blended, part_logs, pruned
from ldpaudit.attacks.models.cell_table import CellTable, cell_table, cell_weight
from ldpaudit.attacks.models.counts import clean_prior
from ldpaudit.attacks.models.gaussian import GaussianPart, fit_gaussian
from ldpaudit.attacks.models.interactions import CrossesPart, fit_crosses
from ldpaudit.attacks.models.many_values.encoding import (
    EncodedDesign,
    ValueEncoder,
    ValueLabels,
    fit_encoder,
)
from ldpaudit.attacks.models.near_rows import NeighborPart, fit_neighbors
from ldpaudit.attacks.models.parts import (
    BoostingPart,
    Labelled,
    LogisticPart,
    fit_boosting,
    fit_logistic,
    floored,
)
from ldpaudit.errors import InsufficientDataError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.modelling.screening import MOST_COLUMNS, Screen
from ldpaudit.release import FeatureTable, FloatArray, IndexArray, IntArray

PROBABILITY_FLOOR = 1e-7
"""No predicted probability is below this (nor above 1 minus it)."""
MIN_ROWS = 20
"""With fewer rows the class frequencies are the model."""
MOST_ROWS = 200_000
"""Models are fitted on a random sample of at most this many rows; cells count all."""
_BATCH = 100_000
_WORTH_THREADS = 1_000_000
"""Entries of a table from which boosting gains more by threads than it loses by their barriers."""
_MAX_VALIDATION = 40_000
_FOLDS = 4
_FOLDED_WORK = 2e5

PartOrNone = TypeVar("PartOrNone", LogisticPart | None, BoostingPart | None)


@dataclass(frozen=True)
class PosteriorModel:
    """A calibrated estimate of P(y | x), with y the true label or the released one.

    Built by :func:`fit_posterior`.
    """

    prior: FloatArray
    parts: tuple[Model, ...] = ()
    weights: FloatArray | None = None
    cells: CellTable | None = None
    screen: Screen = field(default_factory=Screen)

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(y | x) for each row, float64 of shape (n, K).

        Rows sum to 1 up to rounding; every entry is at least :data:`PROBABILITY_FLOOR`.
        """
        features = self.screen.transform(features.expanded())
        result = np.empty((len(features), len(self.prior)))
        for start in range(0, len(features), _BATCH):
            rows = np.arange(start, min(start + _BATCH, len(features)))
            result[rows] = self._predict_batch(features.take(rows))
        return floored(result, PROBABILITY_FLOOR)

    def _predict_batch(self, features: FeatureTable) -> FloatArray:
        if self.cells is None:
            return self._blend(features)
        spots = self.cells.cells.locate(features)
        result = self.cells.table[spots]
        unknown = np.flatnonzero(spots < 0)
        if len(unknown):
            result[unknown] = self._blend(features.take(unknown))
        return result

    def _blend(self, features: FeatureTable) -> FloatArray:
        if self.weights is None:
            return np.tile(self.prior, (len(features), 1))
        return blended(self.weights, part_logs(self.prior, self.parts, features))


def fit_posterior(
    features: FeatureTable,
    codes: IntArray,
    n_classes: int,
    rng: np.random.Generator,
    threads: int,
    channel: Channel | None = None,
) -> PosteriorModel:
    """Learn P(y | x) from the rows given.

    Parameters
    ----------
    features : FeatureTable
        n rows; no column, or constant columns, leave the class frequencies.
    codes : int32 array of shape (n,)
        Labels in 0 … n_classes − 1; with a ``channel`` the released labels, its outputs.
    n_classes : int
        K; classes that do not occur get a small probability.
    rng : numpy.random.Generator
        Draws the rows used, the validation parts and the boosting seeds.
    threads : int
        Threads for BLAS and boosting.
    channel : Channel, optional
        The channel from the K true labels to the codes: the model then predicts the **true**
        label, by forward correction (logistic part and cells), by inversion of the channel
        (boosting), and with weights that minimise the forward log-loss.

    Raises
    ------
    InsufficientDataError
        If there is no row.
    """
    if len(codes) == 0:
        raise InsufficientDataError("A model of the labels needs at least one row.")
    everything = _labelled(features, codes, n_classes, channel)
    rows = _sampled(len(codes), MOST_ROWS, rng)
    with _threads(len(rows) * everything.features.width, threads):
        return _fit(everything, rows, rng)


def refit_posterior(
    model: PosteriorModel,
    features: FeatureTable,
    codes: IntArray,
    rng: np.random.Generator,
    threads: int,
    channel: Channel | None = None,
    *,
    sampled: bool = False,
) -> PosteriorModel:
    """Fit the same blend on other rows, usually more of them: nothing is chosen again.

    Parameters
    ----------
    model : PosteriorModel
        Keeps its parts, their penalties, the blend's weights and its weight in a cell.
    features, codes, rng, threads, channel
        As for :func:`fit_posterior`; no row is held out.
    sampled : bool
        Whether the model was fitted on a sample of its rows: then only parts on counts of all rows
        are fitted again, since the sample does not grow.
    """
    everything = _labelled(features, codes, len(model.prior), channel).screened(model.screen)
    if model.weights is None:
        return PosteriorModel(everything.prior)
    parts = model.parts
    with _threads(min(len(codes), MOST_ROWS) * features.width, threads):
        if not sampled:
            table = everything.take(_sampled(len(codes), MOST_ROWS, rng))
            kept = [part for part in parts if not isinstance(part, CrossesPart)]
            others = iter(_all_refitted(table, tuple(kept), rng))
            parts = tuple(p if isinstance(p, CrossesPart) else next(others) for p in parts)
        parts = tuple(_recounted(everything, part, rng) for part in parts)
        blend = PosteriorModel(everything.prior, parts, model.weights)
        weight = 0.0 if model.cells is None else model.cells.weight
        final = replace(blend, cells=cell_table(blend, weight, everything))
    return replace(final, screen=model.screen)


def _labelled(features: FeatureTable, codes: IntArray, k: int, channel: Channel | None) -> Labelled:
    transition = np.eye(k) if channel is None else channel.matrix
    return Labelled(features.expanded(), codes, transition, channel, clean_prior(codes, transition))


def _sampled(n: int, most: int, rng: np.random.Generator) -> IndexArray:
    return np.arange(n) if n <= most else np.sort(rng.choice(n, size=most, replace=False))


def _threads(entries: int, threads: int) -> AbstractContextManager[object]:
    from threadpoolctl import threadpool_limits

    boosting = threads if entries >= _WORTH_THREADS else 1
    limits: AbstractContextManager[object] = threadpool_limits({"blas": 1, "openmp": boosting})
    return limits


def _fit(everything: Labelled, rows: IndexArray, rng: np.random.Generator) -> PosteriorModel:
    table = everything.take(rows)
    if len(rows) < MIN_ROWS or len(np.unique(table.codes)) < 2 or table.features.is_constant():
        return PosteriorModel(table.prior)
    folds = _folds(table, rng)
    screen = Screen()
    if table.features.width > MOST_COLUMNS:
        screen = Screen.fit(*_rows_of(table, folds[0][0]), MOST_COLUMNS)
        # The other folds' validation rows have chosen the columns.
        everything, table, folds = everything.screened(screen), table.screened(screen), folds[:1]
    fitted = [_parts(table, training, validation, rng) for training, validation in folds]
    kinds = set.intersection(*({type(part) for part in parts} for parts in fitted))
    fitted = [tuple(part for part in parts if type(part) in kinds) for parts in fitted]
    logs = np.concatenate(
        [
            part_logs(table.prior, parts, table.features.take(validation))
            for parts, (_, validation) in zip(fitted, folds, strict=True)
        ],
        axis=1,
    )
    judged = np.concatenate([validation for _, validation in folds])
    needed, weights = pruned(logs, table.likelihood(judged), table.contrast)
    first = PosteriorModel(table.prior, tuple(fitted[0][i] for i in needed), weights)
    if len(folds) > 1:
        parts = _all_refitted(table, first.parts, rng)
    else:
        parts = tuple(_recounted(everything, part, rng) for part in first.parts)
    final = replace(first, parts=parts)
    # Rows that no part was fitted on judge the cells too, also those that were thinned out.
    weight = cell_weight(first, everything, rows[folds[0][0]])
    return replace(final, cells=cell_table(final, weight, everything), screen=screen)


def _rows_of(table: Labelled, rows: IndexArray) -> tuple[FeatureTable, IntArray]:
    return table.features.take(rows), table.codes[rows]


def _folds(table: Labelled, rng: np.random.Generator) -> list[tuple[IndexArray, IndexArray]]:
    """Return (training, validation) rows: a fifth held out, or for small tables four folds."""
    n = len(table.codes)
    order = rng.permutation(n)
    if n * table.features.width * len(table.transition) <= _FOLDED_WORK:
        parts = [np.sort(part) for part in np.array_split(order, _FOLDS)]
        return [(np.setdiff1d(order, part), part) for part in parts]
    held = min(n // 5, _MAX_VALIDATION)
    return [(np.sort(order[held:]), np.sort(order[:held]))]


def _parts(
    table: Labelled, training: IndexArray, validation: IndexArray, rng: np.random.Generator
) -> tuple[Model, ...]:
    if len(np.unique(table.codes[training])) < 2:
        return ()
    crosses = fit_crosses(table, training, rng)
    encoder, encoded = fit_encoder(table, training, rng)
    linear = crosses or _behind(encoder, fit_logistic(encoded, training, validation, rng))
    boosting = _behind(encoder, fit_boosting(encoded, training, rng))
    value = None if encoder is None else encoder.strongest
    trained = (linear, boosting, fit_gaussian(table, training), value)
    learnt: tuple[Model, ...] = tuple(part for part in trained if part is not None)
    near = fit_neighbors(table, training, validation, learnt, rng)
    return learnt if near is None else (*learnt, near)


def _behind(encoder: ValueEncoder | None, part: PartOrNone) -> PartOrNone:
    """Return the part as a model of tables that are not encoded yet."""
    if encoder is None or part is None:
        return part
    return replace(part, design=EncodedDesign(encoder, part.design))


def _all_refitted(
    table: Labelled, parts: tuple[Model, ...], rng: np.random.Generator
) -> tuple[Model, ...]:
    """Return the parts fitted on all rows, with the same penalties."""
    everyone = np.arange(len(table.codes))
    encoder, encoded = fit_encoder(table, everyone, rng, _effects(parts))
    refitted: list[Model] = []
    for part in parts:
        if isinstance(part, LogisticPart):
            linear = fit_logistic(encoded, everyone, everyone, rng, part.penalty)
            refitted.append(_behind(encoder, linear) or part)
        elif isinstance(part, BoostingPart):
            refitted.append(_behind(encoder, fit_boosting(encoded, everyone, rng)) or part)
        elif isinstance(part, ValueLabels):
            refitted.append(part if encoder is None else encoder.strongest)
        elif isinstance(part, GaussianPart):
            refitted.append(fit_gaussian(table, everyone) or part)
        elif isinstance(part, NeighborPart):
            refitted.append(part.refitted(table))
        else:
            refitted.append(_recounted(table, part, rng))
    return tuple(refitted)


def _effects(parts: tuple[Model, ...]) -> list[tuple[int, ...]]:
    """Return the columns and combinations that the parts encode."""
    designs = (p.design for p in parts if isinstance(p, LogisticPart | BoostingPart))
    alone = [part.columns for part in parts if isinstance(part, ValueLabels)]
    return next((d.effects for d in designs if isinstance(d, EncodedDesign)), alone)


def _recounted(table: Labelled, part: Model, rng: np.random.Generator) -> Model:
    """Return the part, fitted on all rows where it needs only counts."""
    if not isinstance(part, CrossesPart):
        return part
    return fit_crosses(table, np.arange(len(table.codes)), rng, part.penalties) or part
