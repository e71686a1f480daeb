"""The attacker on double randomized response who knows what the generator makes."""

# Under double randomized response a released feature vector is original with probability 1 − λ,
# else a row of the synthetic table, of a label drawn uniformly. Rows of the table that are released
# unchanged are recognised; if the attacker has other rows of the same generator, a discriminator
# estimates how likely a released row comes from it.

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ldpaudit.attacks.interface import Model
from ldpaudit.doors import FeatureTable, FloatArray, IndexArray, Release
from ldpaudit.estimators.discriminators import (
    FEWEST_ROWS,
    Discriminator,
    fit_strongest,
    kinds_for,
)
from ldpaudit.models.counts import Hashes, clean_prior, hash_rows
from ldpaudit.models.row_channels import fit_row_channels
from ldpaudit.release import BoolArray, Float32Array, SyntheticTable

_MOST_ROWS_TOLD_APART = 20_000
_SHAPE = 2.0
_ROUNDS = 40
_RECOGNISED = 0.5


# P(original | x̃) of released features, float64 of shape (n,).
OriginalShare = Callable[[FeatureTable], FloatArray]


@dataclass(frozen=True)
class DiscountedModel:
    """P(y | x̃) = w(x̃) η_y(x̃) + (1 − w(x̃)) p_y."""

    model: Model
    share: OriginalShare
    prior: FloatArray

    def predict(self, features: FeatureTable) -> FloatArray:
        original = self.share(features)[:, None]
        return np.asarray(original * self.model.predict(features) + (1 - original) * self.prior)


def discounted_model(
    release: Release,
    transition: FloatArray,
    noise: float,
    rng: np.random.Generator,
    threads: int,
) -> DiscountedModel:
    """Learn which rows are original, and P(label | features) from them.

    ``transition``: the channel, float64 (k, m).
    """
    assert release.synthetic is not None
    k = len(release.classes)
    share = original_share(release.features, release.synthetic, noise, k, rng, threads)
    prior = clean_prior(release.released, transition)
    original = share(release.features)[:, None]
    anyone = (prior @ transition)[release.released][:, None]
    likelihood = original * transition.T[release.released] + (1 - original) * anyone
    # A row that is surely synthetic has no information, and would only use up the sample.
    rows = np.flatnonzero(original[:, 0] > 0)
    model = fit_row_channels(release.features.take(rows), likelihood[rows], rng)
    return DiscountedModel(model, share, prior)


def original_share(
    features: FeatureTable,
    table: SyntheticTable,
    noise: float,
    k: int,
    rng: np.random.Generator,
    threads: int = 1,
) -> OriginalShare:
    """Learn which released rows are original.

    ``table``: that replaced rows were drawn from, or other rows of the same generator. By the
    rows that equal a row of the table, where at least λ/2 of all do; else by a discriminator.
    """
    keys, weights = _weights(table, k)
    spots, known = _locate(keys, features)
    if known.mean() < _RECOGNISED * noise:
        return discriminating(features, table, k, noise, rng, threads)
    shares = _shares(weights, spots[known], len(features), noise)

    def original(features: FeatureTable) -> FloatArray:
        spots, known = _locate(keys, features)
        return np.where(known, shares[spots], 1.0)

    return original


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


def _shares(weights: FloatArray, spots: IndexArray, n: int, noise: float) -> FloatArray:
    """Return P(original) in each cell by expectation–maximisation."""
    # A cell has on average nλg synthetic and n(1 − λ)ρg original released rows, ρ = P_X/g in the
    # cell. ρ has a Gamma prior of shape 2 around its mean over all cells, estimated by the share of
    # rows found in the table beyond λ: 0 where features are continuous.
    seen = np.bincount(spots, minlength=len(weights)).astype(np.float64)
    mean = max(len(spots) / n - noise, 0.0) / max(1.0 - noise, 1e-12)
    if mean == 0.0 or noise == 0.0:
        return np.full(len(weights), float(noise == 0.0))
    ratio = np.full(len(weights), mean)
    for _ in range(_ROUNDS):
        original = seen * (1 - noise) * ratio / ((1 - noise) * ratio + noise)
        ratio = (_SHAPE + original) / (_SHAPE / mean + n * (1 - noise) * weights)
    return (1 - noise) * ratio / ((1 - noise) * ratio + noise)


def discriminating(
    features: FeatureTable,
    table: SyntheticTable,
    k: int,
    noise: float,
    rng: np.random.Generator,
    threads: int,
) -> OriginalShare:
    """Estimate 1 − λ g(x̃)/q(x̃) by a discriminator of generated against released rows."""
    # With too few rows for a discriminator it is 1 − λ.
    released = features.take(rng.permutation(len(features))[:_MOST_ROWS_TOLD_APART])
    p, q = _matrix(table.features.take(_balanced(table, k, rng))), _matrix(released)
    fewest, width = min(len(p), len(q)), p.shape[1]
    if fewest < FEWEST_ROWS or width == 0:
        return lambda features: np.full(len(features), 1.0 - noise)
    codes = np.arange(width) < features.categorical.shape[1]
    kinds = kinds_for(width, codes, fewest)
    model = fit_strongest(p, q, kinds, rng=rng, categorical=codes, threads=threads)
    return by_discriminator(model, noise)


def by_discriminator(model: Discriminator, noise: float) -> OriginalShare:
    """Return 1 − λ g(x̃)/q(x̃) by a discriminator of generated against released rows."""
    return lambda features: np.clip(
        1.0 - noise * np.exp(model.log_ratio(_matrix(features))), 0.0, 1.0
    )


def _balanced(table: SyntheticTable, k: int, rng: np.random.Generator) -> IndexArray:
    order = rng.permutation(len(table.labels))
    labels = [order[table.labels[order] == y] for y in range(k)]
    each = min(len(rows) for rows in labels)
    return np.concatenate([rows[: min(each, _MOST_ROWS_TOLD_APART // k)] for rows in labels])


def _matrix(features: FeatureTable) -> Float32Array:
    codes = np.where(features.categorical < 0, np.nan, features.categorical)
    return np.concatenate([codes.astype(np.float32), features.numeric], axis=1)
