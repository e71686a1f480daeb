"""A mixture for each class: Gaussian numbers and independent categories within each component."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from ldpaudit.errors import GeneratorDivergedError, InputError, InsufficientDataError
from ldpaudit.progress import NoProgress, Progress
from ldpaudit.randomness import integer_seed
from ldpaudit.release import Float32Array, FloatArray, IntArray
from ldpaudit.synthesis.encoded import EncodedRows
from ldpaudit.synthesis.interface import (
    VERSION,
    DeviceName,
    TrainedOn,
    check_labels,
    check_training_set,
    not_fitted,
)
from ldpaudit.synthesis.table_codec import TableCodec

MIN_CLASS_ROWS = 20
_ROWS_PER_COMPONENT = 50
_MOST_FACTORS = 60
_JITTER = 1e-4
_FIT_ROWS = 20_000


@dataclass(frozen=True)
class ClassMixture:
    """P̂(x | y) of one class: Σ_j w_j N(numbers; μ_j, Σ_j) Π_c P_jc(code).

    The numbers are first expressed by f uncorrelated factors (f = d unless d is large); what the
    factors leave over is independent Gaussian noise.

    Attributes
    ----------
    weights : float64 array of shape (j,)
    means : float64 array of shape (j, f)
    roots : float64 array of shape (j, f, f)
        Lower Cholesky factors of the covariances.
    center : float64 array of shape (d,)
    factors : float64 array of shape (f, d)
    residual : float64 array of shape (d,)
        The standard deviations of what is left over.
    tables : tuple of float64 arrays of shape (j, cardinality)
        The categories' shares in each component.
    """

    weights: FloatArray
    means: FloatArray
    roots: FloatArray
    center: FloatArray
    factors: FloatArray
    residual: FloatArray
    tables: tuple[FloatArray, ...]

    @classmethod
    def fit(cls, rows: EncodedRows, components: int, seed: int) -> "ClassMixture":
        """Fit it: components by a diagonal Gaussian mixture on everything, then one weighted step.

        The last step makes the mean of each coordinate and the share of each category those of
        the rows. scikit-learn knows no mixture of numbers and categories together.

        Raises
        ------
        GeneratorDivergedError
            If the fit gives no finite numbers.
        """
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import GaussianMixture

        numbers = rows.numbers.astype(np.float64)
        center, factors, scores, residual = _factored(numbers, seed)
        points = np.hstack([scores, _category_points(rows)])
        most = max(1, min(components, len(rows) // _ROWS_PER_COMPONENT))
        fitted = GaussianMixture(
            most, covariance_type="diag", reg_covar=1e-2, max_iter=60, tol=1e-3, random_state=seed
        )
        import warnings

        with warnings.catch_warnings():
            # Reaching 60 rounds is no failure: any assignment to components is a valid start.
            warnings.simplefilter("ignore", ConvergenceWarning)
            shares = fitted.fit(points[:_FIT_ROWS]).predict_proba(points)
        weights = shares.mean(axis=0)
        shares = shares[:, weights > 1 / len(rows)]
        weights = shares.mean(axis=0) / shares.mean(axis=0).sum()
        means, roots = _moments(scores, shares)
        tables = tuple(
            _table(rows.codes[:, c], size, shares) for c, size in enumerate(rows.cardinalities)
        )
        found = cls(weights, means, roots, center, factors, residual, tables)
        if not all(np.isfinite(part).all() for part in (weights, means, roots, *tables)):
            raise GeneratorDivergedError(
                "Fitting the mixture failed: its parameters are not finite. Nothing is kept."
            )
        return found

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Float32Array, IntArray]:
        """Draw n rows: numbers, float32 of (n, d), and codes, int32 of (n, c)."""
        which = rng.choice(len(self.weights), n, p=self.weights)
        noise = rng.standard_normal((n, self.means.shape[1]))
        scores = self.means[which] + np.einsum("nij,nj->ni", self.roots[which], noise)
        numbers = self.center + scores @ self.factors
        numbers += self.residual * rng.standard_normal(numbers.shape)
        codes = np.zeros((n, len(self.tables)), dtype=np.int32)
        for c, table in enumerate(self.tables):
            upto = np.cumsum(table, axis=1)[which]
            # The last share counts as 1 whatever rounding says.
            codes[:, c] = (upto[:, :-1] <= rng.random(n)[:, None]).sum(axis=1)
        return numbers.astype(np.float32), codes


class ClassMixtures:
    """A mixture model for each class; fast, without a GPU, and steady.

    Parameters
    ----------
    trained_on : {"public", "private"}
        Whose rows it will be fitted on; goes into the declaration.
    components : int
        At most so many components for each class, and at most one for 50 rows.
    """

    name = "mixture"

    def __init__(self, *, trained_on: TrainedOn = "private", components: int = 40) -> None:
        if components < 1:
            raise InputError(f"There must be at least one component. Got {components} instead.")
        self.trained_on = trained_on
        self.components = components
        self._warnings: tuple[str, ...] = ()
        self._seed: int | None = None
        self._rows = 0
        self._codec: TableCodec | None = None
        self._mixtures: tuple[ClassMixture, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know about the fit, one sentence each."""
        return self._warnings

    def fit(
        self,
        table: pa.Table,
        labels: IntArray,
        classes: int,
        *,
        rng: np.random.Generator,
        progress: Progress | None = None,
        device: DeviceName = "auto",
    ) -> Self:
        """Fit it; see :meth:`ldpaudit.synthesis.interface.Generator.fit`. It needs no device."""
        del device
        codes = check_training_set(table, labels, classes)
        counts = np.bincount(codes, minlength=classes)
        if (counts < MIN_CLASS_ROWS).any():
            raise InsufficientDataError(
                f"A generator needs at least {MIN_CLASS_ROWS} rows of every class; "
                f"{int((counts < MIN_CLASS_ROWS).sum())} of {classes} classes have fewer."
            )
        said = progress or NoProgress()
        said.step(f"generator: {table.num_rows} rows, a mixture for each of {classes} classes")
        seed = integer_seed(rng)
        draws = np.random.default_rng(seed)
        codec = TableCodec.fit(table)
        rows = codec.encode(table, draws)
        mixtures = []
        for y in range(classes):
            chosen = draws.permutation(np.flatnonzero(codes == y))
            mixtures.append(
                ClassMixture.fit(rows.take(chosen), self.components, integer_seed(draws))
            )
            said.advance(y + 1, classes)
        few = int((counts < _ROWS_PER_COMPONENT * self.components).sum())
        self._warnings = (
            (f"{few} of {classes} classes have too few rows for all components.",) if few else ()
        )
        self._seed, self._rows = seed, table.num_rows
        self._codec, self._mixtures = codec, tuple(mixtures)
        return self

    def sample(self, labels: IntArray, rng: np.random.Generator) -> pa.Table:
        """Draw one row for each label; see :meth:`ldpaudit.synthesis.interface.Generator.sample`."""
        if self._codec is None:
            raise not_fitted()
        codes = check_labels(labels, len(self._mixtures))
        numbers = np.zeros((len(codes), self._codec.numbers), dtype=np.float32)
        cells = np.zeros((len(codes), len(self._codec.cardinalities)), dtype=np.int32)
        for y, mixture in enumerate(self._mixtures):
            rows = np.flatnonzero(codes == y)
            numbers[rows], cells[rows] = mixture.sample(len(rows), rng)
        return self._codec.decode(EncodedRows(numbers, cells, self._codec.cardinalities), rng)

    def describe(self) -> Mapping[str, Any]:
        """Return name, version, seed, number of training rows and whose rows they were."""
        if self._codec is None:
            raise not_fitted()
        return {
            "name": self.name,
            "version": VERSION,
            "components": self.components,
            "seed": self._seed,
            "rows": self._rows,
            "trained_on": self.trained_on,
        }

    def state(self) -> dict[str, Any]:
        """Return everything that :meth:`from_state` needs, as tensors and plain values."""
        import torch

        from ldpaudit.synthesis.codec_state import codec_state

        if self._codec is None:
            raise not_fitted()
        parts = [
            {key: torch.from_numpy(getattr(mixture, key)) for key in _ARRAYS}
            | {"tables": [torch.from_numpy(table) for table in mixture.tables]}
            for mixture in self._mixtures
        ]
        return {
            "trained_on": self.trained_on,
            "components": self.components,
            "seed": self._seed,
            "rows": self._rows,
            "codec": codec_state(self._codec),
            "mixtures": parts,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "ClassMixtures":
        """Rebuild a fitted generator."""
        from ldpaudit.synthesis.codec_state import codec_from_state

        found = cls(trained_on=state["trained_on"], components=int(state["components"]))
        found._seed, found._rows = state["seed"], int(state["rows"])
        codec = codec_from_state(state["codec"])
        assert isinstance(codec, TableCodec)
        found._codec = codec
        found._mixtures = tuple(
            ClassMixture(
                **{key: part[key].numpy() for key in _ARRAYS},
                tables=tuple(table.numpy() for table in part["tables"]),
            )
            for part in state["mixtures"]
        )
        return found


_ARRAYS = ("weights", "means", "roots", "center", "factors", "residual")


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


def _category_points(rows: EncodedRows) -> FloatArray:
    """Return one-hot codes scaled so that each variable weighs about as much as one number."""
    d = rows.numbers.shape[1]
    onehot = rows.flat()[:, d:].astype(np.float64)
    spread, start = onehot, 0
    for size in rows.cardinalities:
        block = onehot[:, start : start + size]
        spread[:, start : start + size] /= np.sqrt(max(block.var(axis=0).sum(), 1e-2))
        start += size
    return spread


def _moments(scores: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means (j, f) and Cholesky factors (j, f, f) of the components."""
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
    """Return the share of each code in each component, float64 of shape (j, size)."""
    counts = np.stack([np.bincount(codes, column, minlength=size) for column in shares.T])
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))
