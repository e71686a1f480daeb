"""Tables with a released label whose noise, or columns, have a fault of some kind."""

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier


def release(
    kind: str, seed: int, n: int = 3000, *, made: float = 1.0
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table with a released label, and its true labels."""
    rng = np.random.default_rng(seed)
    truth, lost = (rng.random(n) < 0.4).astype(int), 1 / (1 + np.exp(made))
    points, flips = truth[:, None] + rng.standard_normal((n, 4)), rng.random(n) < lost
    group = np.arange(n)
    if kind == "remembered":
        group = np.arange(n) // 5
        truth, points = truth[group * 5], points[group * 5]
        flips = (rng.random(n) < lost)[group]
    if kind.startswith("household"):
        group = np.arange(n) // int(kind.removeprefix("household-"))
        flips = (rng.random(n) < lost)[group]
    if kind.startswith("period"):
        flips = np.resize(flips[: int(kind.removeprefix("period-"))], n)
    if kind == "workers":
        # Eight take the rows as they come, and all draw the same sequence.
        worker, numbers = rng.integers(0, 8, n), rng.random(n) < lost
        for one in range(8):
            rows = np.flatnonzero(worker == one)
            flips[rows] = numbers[: len(rows)]
    if kind == "mirrored":
        flips[n // 2 :] = flips[: n // 2][::-1]
    if kind == "steered":
        flips &= points[:, 0] < 1.5
    if kind.startswith("answers"):
        group = np.arange(n) // 5
        truth, points = truth[group * 5], points[group * 5]
        points[:, 3] = rng.standard_normal(n)
        points[:, 2] = np.round(truth + rng.standard_normal(n), 1)
        points[:, :2] = points[:, :2].round(1)
        flips = (rng.random(n) < lost)[group]
    if kind == "model":
        points[:, 1:] -= truth[:, None]
    if kind == "compensated":
        old = rng.random(n) < 0.07
        truth[old & (rng.random(n) < 0.8)] = 0
        points = truth[:, None] + rng.standard_normal((n, 4))
        points[:, 3] = np.where(old, 3, 0) + rng.random(n)
        flips = ~old & (rng.random(n) < lost / 0.93)
    if kind == "visits":
        group = np.arange(n) // 3
        truth, points = truth[group * 3], points[group * 3] + rng.standard_normal((n, 4))
    frame = pd.DataFrame(points, columns=["a", "b", "c", "d"])
    released = np.where(flips, 1 - truth, truth)
    columns = {
        "code": released,
        "text": np.where(released == 1, "yes", "no"),
        "score": 2 * released + rng.standard_normal(n),
        "faint": released + 2 * rng.standard_normal(n),
        "weight": 1 / np.bincount(released)[released],
    }
    if kind == "model":
        model = HistGradientBoostingClassifier(early_stopping=False, random_state=seed)
        frame["column"] = model.fit(points, released).predict_proba(points)[:, 1]
    if kind in columns:
        frame["column"] = columns[kind]
    frame["home"], frame["label"] = group, released
    order = rng.permutation(n) if kind in ("remembered", "answers") else np.arange(n)
    return frame.iloc[order].reset_index(drop=True), truth[order]
