"""Weeks worked by women of the 1980 census, zero weeks dropped as in the papers; a regressor."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder

from ldpaudit.learners import ReleaseRegressor

_WORDS = ["morekids", "gender1", "gender2", "afam", "hispanic", "other"]


def features_and_weeks(folder: Path, *, worked: bool) -> tuple[Any, Any]:
    """Return the features and the weeks, int64; ``worked``: only of who worked at least one."""
    table = pd.read_parquet(folder / "fertility.parquet")
    if worked:
        table = table[table["work"] > 0]
    encoder = make_column_transformer(
        (OneHotEncoder(drop="if_binary", sparse_output=False), _WORDS), ("passthrough", ["age"])
    )
    X = np.asarray(encoder.fit_transform(table), dtype=np.float64)
    return X, table["work"].to_numpy().astype(np.int64)


def test_error(X: Any, weeks: Any, mechanism: Any, seed: int) -> float:
    """Return the test error of boosting on four fifths released by a mechanism, None for as is.

    The released labels are taken as they are, as in the papers.
    """
    rng = np.random.default_rng(seed)
    train, test = np.split(rng.permutation(len(weeks)), [int(0.8 * len(weeks))])
    released = weeks[train] if mechanism is None else mechanism.release(weeks[train], rng)
    model = ReleaseRegressor(model="boosting", correction=None, rounds=60, random_state=seed)
    guesses = model.fit(X[train], np.asarray(released, dtype=np.float64)).predict(X[test])
    return float(np.mean((guesses - weeks[test]) ** 2))
