"""How likely each released row is an original one, for an attacker who knows the generator.

Under double randomized response a released feature vector is original with probability 1 − λ, else
a row of the synthetic table, of a label drawn uniformly. Rows of the table that are released
unchanged are recognised; if the attacker has other rows of the same generator, a discriminator
estimates how likely a released row comes from it.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ldpaudit.attacks.models.cells import Hashes, hash_rows
from ldpaudit.estimators.renyi.discriminators.discriminator import (
    FEWEST_ROWS,
    Discriminator,
    fit_strongest,
    kinds_for,
)
from ldpaudit.release import (
    BoolArray,
    FeatureTable,
    Float32Array,
    FloatArray,
    IndexArray,
    SyntheticTable,
)

_MOST_ROWS = 20_000
_SHAPE = 2.0
_ROUNDS = 40
_RECOGNISED = 0.5


class OriginalShare(Protocol):
    """A model of how likely released rows are original."""

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(original | x̃), float64 of shape (n,)."""


def original_share(
    features: FeatureTable,
    table: SyntheticTable,
    noise: float,
    k: int,
    rng: np.random.Generator,
    threads: int = 1,
) -> OriginalShare:
    """Learn which released rows are original.

    Parameters
    ----------
    features : FeatureTable
        Released features, n rows.
    table : SyntheticTable
        The table that replaced rows were drawn from, or other rows of the same generator.
    noise : float
        λ.
    k : int
        The number of labels.
    rng : numpy.random.Generator
        Draws rows, and the discriminator's seed.
    threads : int
        Threads of boosting.

    Returns
    -------
    OriginalShare
        By the rows that equal a row of the table, where at least λ/2 of all do; else by a
        discriminator.
    """
    keys, weights = _weights(table, k)
    spots, known = _locate(keys, features)
    if known.mean() >= _RECOGNISED * noise:
        return _recognising(keys, weights, spots[known], len(features), noise)
    return _discriminating(features, table, k, noise, rng, threads)


@dataclass(frozen=True)
class Recognition:
    """Rows of the table are recognised; a row that is not in it is original.

    Attributes
    ----------
    keys : uint64 array of shape (c,)
        Sorted hashes of the table's distinct rows.
    share : float64 array of shape (c,)
        P(original | x̃) in each of them.
    """

    keys: Hashes
    share: FloatArray

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(original | x̃), float64 of shape (n,)."""
        spots, known = _locate(self.keys, features)
        return np.where(known, self.share[spots], 1.0)


@dataclass(frozen=True)
class Discrimination:
    """P(original | x̃) = 1 − λ g(x̃)/q(x̃) by a discriminator of generated against released rows.

    With too few rows for a discriminator (None) it is 1 − λ.
    """

    discriminator: Discriminator | None
    noise: float

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(original | x̃), float64 of shape (n,)."""
        if self.discriminator is None:
            return np.full(len(features), 1.0 - self.noise)
        ratio = np.exp(self.discriminator.log_ratio(_matrix(features)))
        return np.asarray(np.clip(1.0 - self.noise * ratio, 0.0, 1.0))


def _weights(table: SyntheticTable, k: int) -> tuple[Hashes, FloatArray]:
    """Return the distinct rows and g, the probability of each with labels drawn uniformly."""
    counts = np.bincount(table.labels, minlength=k)
    each = 1.0 / (k * counts[table.labels])
    keys, members = np.unique(hash_rows(table.features), return_inverse=True)
    return keys, np.asarray(np.bincount(members, weights=each), dtype=np.float64)


def _locate(keys: Hashes, features: FeatureTable) -> tuple[IndexArray, BoolArray]:
    hashes = hash_rows(features)
    spots = np.minimum(np.searchsorted(keys, hashes), len(keys) - 1)
    return spots, keys[spots] == hashes


def _recognising(
    keys: Hashes, weights: FloatArray, spots: IndexArray, n: int, noise: float
) -> Recognition:
    """Return P(original) in each cell by expectation–maximisation.

    A cell has on average nλg synthetic and n(1 − λ)ρg original released rows, ρ = P_X/g in the
    cell. ρ has a Gamma prior of shape 2 around its mean over all cells, estimated by the share of
    rows found in the table beyond λ: 0 where features are continuous.
    """
    seen = np.bincount(spots, minlength=len(keys)).astype(np.float64)
    mean = max(len(spots) / n - noise, 0.0) / max(1.0 - noise, 1e-12)
    if mean == 0.0 or noise == 0.0:
        return Recognition(keys, np.full(len(keys), float(noise == 0.0)))
    ratio = np.full(len(keys), mean)
    for _ in range(_ROUNDS):
        original = seen * (1 - noise) * ratio / ((1 - noise) * ratio + noise)
        ratio = (_SHAPE + original) / (_SHAPE / mean + n * (1 - noise) * weights)
    return Recognition(keys, (1 - noise) * ratio / ((1 - noise) * ratio + noise))


def _discriminating(
    features: FeatureTable,
    table: SyntheticTable,
    k: int,
    noise: float,
    rng: np.random.Generator,
    threads: int,
) -> OriginalShare:
    released = features.take(rng.permutation(len(features))[:_MOST_ROWS])
    p, q = _matrix(table.features.take(_balanced(table, k, rng))), _matrix(released)
    fewest, width = min(len(p), len(q)), p.shape[1]
    if fewest < FEWEST_ROWS or width == 0:
        return Discrimination(None, noise)
    categorical = np.arange(width) < features.categorical.shape[1]
    kinds = kinds_for(width, categorical, fewest)
    discriminator = fit_strongest(p, q, kinds, rng=rng, categorical=categorical, threads=threads)
    return Discrimination(discriminator, noise)


def _balanced(table: SyntheticTable, k: int, rng: np.random.Generator) -> IndexArray:
    order = rng.permutation(len(table.labels))
    labels = [order[table.labels[order] == y] for y in range(k)]
    each = min(len(rows) for rows in labels)
    return np.concatenate([rows[: min(each, _MOST_ROWS // k)] for rows in labels])


def _matrix(features: FeatureTable) -> Float32Array:
    codes = np.where(features.categorical < 0, np.nan, features.categorical)
    return np.concatenate([codes.astype(np.float32), features.numeric], axis=1)
