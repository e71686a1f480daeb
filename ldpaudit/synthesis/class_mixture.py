"""One class's mixture: Gaussian numbers and independent categories within each component."""

import warnings
from dataclasses import dataclass

import numpy as np

from ldpaudit.errors import GeneratorDivergedError
from ldpaudit.release import Float32Array, FloatArray, IntArray
from ldpaudit.synthesis.codecs.encoded import EncodedRows

ROWS_PER_COMPONENT = 50
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
        most = max(1, min(components, len(rows) // ROWS_PER_COMPONENT))
        fitted = GaussianMixture(
            most, covariance_type="diag", reg_covar=1e-2, max_iter=60, tol=1e-3, random_state=seed
        )
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
        if not all(np.isfinite(part).all() for part in (weights, means, roots, *tables)):
            raise GeneratorDivergedError(
                "Fitting the mixture failed: its parameters are not finite. Nothing is kept."
            )
        return cls(weights, means, roots, center, factors, residual, tables)

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
            # The last share counts as 1, despite rounding.
            codes[:, c] = (upto[:, :-1] <= rng.random(n)[:, None]).sum(axis=1)
        return numbers.astype(np.float32), codes


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
