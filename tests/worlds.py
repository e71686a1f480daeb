"""Worlds that many tests share: feature tables, and releases whose features go with labels."""

import json
from typing import Any

import numpy as np
import pyarrow as pa

from ldpaudit.mechanisms import Channel, ExplicitChannel, RandomizedResponse
from ldpaudit.release import FeatureTable, Release, ReleasedLabels, TrueLabels


def feature_table(numbers: Any = None, codes: Any = None) -> FeatureTable:
    """Return a table of numbers of shape (n, d), of codes of shape (n, c), or of both."""
    rows = len(codes if numbers is None else numbers)
    numeric = np.zeros((rows, 0)) if numbers is None else np.asarray(numbers)
    levels = np.zeros((rows, 0)) if codes is None else np.asarray(codes)
    sizes = tuple(int(column.max(initial=-1)) + 1 for column in levels.T)
    width = numeric.shape[1] + levels.shape[1]
    return FeatureTable(numeric.astype(np.float32), levels.astype(np.int32), sizes, width)


def gaussian_release(
    n: int, epsilon: float, seed: int, *, k: int = 2, columns: int = 3, shift: float = 0.4
) -> tuple[Release, RandomizedResponse]:
    """Return randomized response of labels, and normal features a ``shift`` apart for each."""
    mechanism = RandomizedResponse.from_epsilon(tuple(f"c{i}" for i in range(k)), epsilon)
    return gaussian_release_by(mechanism, n, seed, columns=columns, shift=shift), mechanism


ASYMMETRIC = ExplicitChannel(
    Channel(
        np.array([[0.4, 0.35, 0.25], [0.1, 0.85, 0.05], [0.15, 0.05, 0.8]]),
        ("c0", "c1", "c2"),
        ("c0", "c1", "c2"),
    )
)
"""Of three labels, none of which is treated as another: rows, columns and inverse all differ."""
TURNED = ExplicitChannel(
    Channel(
        np.array([[0.2, 0.7, 0.1], [0.05, 0.15, 0.8], [0.8, 0.1, 0.1]]),
        ("c0", "c1", "c2"),
        ("c0", "c1", "c2"),
    )
)
"""Most labels become the next one, so that reading it the wrong way round finds another label."""


def gaussian_release_by(
    mechanism: Any,
    n: int,
    seed: int,
    *,
    columns: int = 3,
    shift: float = 0.4,
    shares: tuple[float, ...] | None = None,
) -> Release:
    """Return labels with noise of a mechanism, and normal features a ``shift`` apart for each.

    ``shares``: those of the true labels; None: they are equally frequent.
    """
    rng, names = np.random.default_rng(seed), mechanism.classes
    k = len(names)
    truth = (rng.integers(0, k, n) if shares is None else rng.choice(k, n, p=shares)).astype(
        np.int32
    )
    values = rng.normal(size=(n, columns)) + shift * (truth[:, None] - (k - 1) / 2)
    labels = ReleasedLabels(mechanism.sample(truth, rng))
    return Release(feature_table(values), labels, names, names, TrueLabels(truth))


def by_stratum(table: pa.Table, classes: tuple[str, ...], epsilons: dict[str, float]) -> pa.Table:
    """Return a table whose label ``a`` declares randomized response for each ``region``."""
    known = {"name": "randomized-response", "classes": list(classes)}
    strata = [{"value": v, "mechanism": {**known, "epsilon": e}} for v, e in epsilons.items()]
    mechanism = {"name": "by-stratum", "strata": strata}
    labels = [{"label": "a", "by": "region", "mechanism": mechanism}]
    stated = json.dumps({"version": 2, "labels": labels}).encode()
    return table.replace_schema_metadata({b"ldpaudit": stated})
