"""A mixture for each class: Gaussian numbers and independent categories within each component."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ldpaudit.device import DeviceName
from ldpaudit.doors import FloatArray, Generator, InputError, IntArray, Progress
from ldpaudit.errors import GeneratorDivergedError
from ldpaudit.extras.release.synthesis.columns import Columns, Encoded
from ldpaudit.generators import TrainedOn, check_labels, not_fitted
from ldpaudit.randomness import integer_seed
from ldpaudit.release import Float32Array

ROWS_PER_COMPONENT = 50
_MOST_FACTORS = 60
_JITTER = 1e-4
_FIT_ROWS = 20_000


@dataclass(frozen=True)
class ClassMixture:
    """P̂(x | y) of one class: Σ_j w_j N(numbers; μ_j, Σ_j) Π_c P_jc(code).

    The numbers are first expressed by f uncorrelated factors (f = d unless d is large); what the
    factors leave over is independent Gaussian noise.
    ``weights``, float64 array of shape (j,). ``means``, float64 array of shape (j, f).
    ``roots``, float64 array of shape (j, f, f): lower Cholesky factors of the covariances.
    ``center``, float64 array of shape (d,). ``factors``, float64 array of shape (f, d).
    ``residual``, float64 array of shape (d,): the standard deviations of what is left over.
    ``tables``, list of float64 arrays of shape (j, cardinality): the categories' shares in each
    component.
    """

    weights: FloatArray
    means: FloatArray
    roots: FloatArray
    center: FloatArray
    factors: FloatArray
    residual: FloatArray
    tables: list[FloatArray]

    @classmethod
    def fit(cls, rows: Encoded, components: int, seed: int) -> "ClassMixture":
        """Fit it: components by a diagonal Gaussian mixture on everything, then one weighted step.

        The last step makes the mean of each coordinate and the share of each category those of the
        rows. scikit-learn knows no mixture of numbers and categories together.
        """
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import GaussianMixture

        numbers = rows.numbers.astype(np.float64)
        center, factors, scores, residual = _factored(numbers, seed)
        points = np.hstack([scores, _category_points(rows)])
        most = max(1, min(components, len(rows.numbers) // ROWS_PER_COMPONENT))
        fitted = GaussianMixture(
            most, covariance_type="diag", reg_covar=1e-2, max_iter=60, tol=1e-3, random_state=seed
        )
        with warnings.catch_warnings():
            # Reaching 60 rounds is no failure: any assignment to components is a valid start.
            warnings.simplefilter("ignore", ConvergenceWarning)
            shares = fitted.fit(points[:_FIT_ROWS]).predict_proba(points)
        weights = shares.mean(axis=0)
        shares = shares[:, weights > 1 / len(rows.numbers)]
        weights = shares.mean(axis=0) / shares.mean(axis=0).sum()
        means, roots = _moments(scores, shares)
        tables = [_table(rows.codes[:, c], size, shares) for c, size in enumerate(rows.sizes)]
        if not all(np.isfinite(part).all() for part in (weights, means, roots, *tables)):
            raise GeneratorDivergedError(
                "Fitting the mixture failed: its parameters are not finite. Nothing is kept."
            )
        return cls(weights, means, roots, center, factors, residual, tables)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Float32Array, IntArray]:
        which = rng.choice(len(self.weights), n, p=self.weights)
        noise = rng.standard_normal((n, self.means.shape[1]))
        scores = self.means[which]
        # A root for each row would take f² numbers a row.
        for place, root in enumerate(self.roots):
            rows = np.flatnonzero(which == place)
            scores[rows] += noise[rows] @ root.T
        numbers = self.center + scores @ self.factors
        numbers += self.residual * rng.standard_normal(numbers.shape)
        codes = np.zeros((n, len(self.tables)), dtype=np.int32)
        for c, table in enumerate(self.tables):
            upto = np.cumsum(table, axis=1)[which]
            # The last share counts as 1, despite rounding.
            codes[:, c] = (upto[:, :-1] <= rng.random(n)[:, None]).sum(axis=1)
        return numbers.astype(np.float32), codes


class ClassMixtures(Generator):
    """A mixture model for each class; fast, without a GPU, and steady."""

    name = "mixture"

    def __init__(self, *, trained_on: TrainedOn = "private", components: int = 40) -> None:
        if components < 1:
            raise InputError(f"There must be at least one component. Got {components} instead.")
        super().__init__(trained_on)
        self.components = components
        self._columns: Columns | None = None
        self._mixtures: tuple[ClassMixture, ...] = ()

    def _learn(
        self,
        table: pa.Table,
        codes: IntArray,
        classes: int,
        rng: np.random.Generator,
        progress: Progress,
        device: DeviceName,  # noqa: ARG002
    ) -> None:
        counts = np.bincount(codes, minlength=classes)
        progress.step(
            f"generator: {table.num_rows:,} rows, a mixture for each of {classes} classes"
        )
        seed = integer_seed(rng)
        draws = np.random.default_rng(seed)
        columns = Columns.fit(table)
        rows = columns.encode(table, draws)
        mixtures = []
        for y in range(classes):
            chosen = draws.permutation(np.flatnonzero(codes == y))
            mixtures.append(
                ClassMixture.fit(rows.take(chosen), self.components, integer_seed(draws))
            )
            progress.advance(y + 1, classes)
        few = int((counts < ROWS_PER_COMPONENT * self.components).sum())
        self.warnings = (
            (f"{few} of {classes} classes have too few rows for all components.",) if few else ()
        )
        self._seed, self._rows = seed, table.num_rows
        self._columns, self._mixtures = columns, tuple(mixtures)

    def sample(self, labels: IntArray, rng: np.random.Generator) -> pa.Table:
        if self._columns is None:
            raise not_fitted()
        codes = check_labels(labels, len(self._mixtures))
        sizes = self._columns.sizes
        numbers = np.zeros((len(codes), self._columns.quantiles.shape[1]), dtype=np.float32)
        cells = np.zeros((len(codes), len(sizes)), dtype=np.int32)
        for y, mixture in enumerate(self._mixtures):
            rows = np.flatnonzero(codes == y)
            numbers[rows], cells[rows] = mixture.sample(len(rows), rng)
        return self._columns.decode(Encoded(numbers, cells, sizes), rng)

    def _kind(self) -> Mapping[str, Any]:
        return {"components": self.components}

    def state(self) -> dict[str, Any]:
        if self._columns is None:
            raise not_fitted()
        return {
            "trained_on": self.trained_on,
            "components": self.components,
            "seed": self._seed,
            "rows": self._rows,
            "columns": vars(self._columns),
            "mixtures": [vars(mixture) for mixture in self._mixtures],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "ClassMixtures":
        made = cls(trained_on=state["trained_on"], components=state["components"])
        made._seed, made._rows = state["seed"], state["rows"]
        made._columns = Columns(**state["columns"])
        made._mixtures = tuple(ClassMixture(**part) for part in state["mixtures"])
        return made


def _factored(
    numbers: FloatArray, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return center (d,), factors (f, d), scores (n, f) and residual deviations (d,)."""
    from sklearn.decomposition import PCA

    d = numbers.shape[1]
    if d <= _MOST_FACTORS:
        return np.zeros(d), np.eye(d), numbers, np.zeros(d)
    most = min(_MOST_FACTORS, len(numbers) - 1)
    fitted = PCA(most, random_state=seed, svd_solver="randomized").fit(numbers)
    scores = fitted.transform(numbers)
    residual = (numbers - fitted.inverse_transform(scores)).std(axis=0)
    return fitted.mean_, fitted.components_, scores, residual


def _category_points(rows: Encoded) -> FloatArray:
    """Return one-hot codes scaled so that each variable weighs about as much as one number."""
    d = rows.numbers.shape[1]
    onehot = rows.flat()[:, d:].astype(np.float64)
    spread, start = onehot, 0
    for size in rows.sizes:
        block = onehot[:, start : start + size]
        spread[:, start : start + size] /= np.sqrt(max(block.var(axis=0).sum(), 1e-2))
        start += size
    return spread


def _moments(scores: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    f = scores.shape[1]
    totals = shares.sum(axis=0)
    means = (shares.T @ scores) / totals[:, None]
    roots = np.empty((shares.shape[1], f, f))
    for j, total in enumerate(totals):
        centred = scores - means[j]
        covariance = (centred * shares[:, j : j + 1]).T @ centred / total
        # Components with fewer rows than dimensions lean towards their diagonal.
        lean = f / (f + total)
        covariance = (1 - lean) * covariance + lean * np.diag(np.diag(covariance))
        roots[j] = np.linalg.cholesky(covariance + _JITTER * np.eye(f))
    return means, roots


def _table(codes: IntArray, size: int, shares: FloatArray) -> FloatArray:
    counts = np.stack([np.bincount(codes, column, minlength=size) for column in shares.T])
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))
