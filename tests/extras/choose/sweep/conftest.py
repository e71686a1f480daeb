"""A small table with true labels, and the parts of a sweep of it."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from processes import called

from ldpaudit.extras.choose.sweep.request import SweepRequest, parse_grid
from ldpaudit.extras.choose.sweep.run import Setup

sweep = partial(called, "sweep")
ROWS = 600
FAST = ("mechanism", "label-inference", "power")


def frame(rows=ROWS, seed=1):
    """Return features that say something of the label, a word, and a number as another label."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, rows)
    x = rng.standard_normal((rows, 2)) + 0.9 * codes[:, None]
    return pd.DataFrame(
        {
            "x": x[:, 0],
            "y": x[:, 1],
            "town": rng.choice(["oslo", "rome", "bonn"], rows),
            "label": np.array(["no", "yes"])[codes],
        }
    )


def numbers(rows=ROWS, seed=1):
    """Return the same features with weeks 0 … 20 as the label."""
    made = frame(rows, seed).drop(columns="label")
    noise = np.random.default_rng(seed + 1).standard_normal(rows)
    weeks = np.clip(np.rint(10 + 2 * made["x"] + 3 * noise), 0, 20).astype(int)
    return made.assign(weeks=weeks)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.parquet"
    frame().to_parquet(path)
    return path


def asked(data, *mechanisms, **options):
    """Return a request that is cheap to answer."""
    parameter, text = options.pop("grid", ("lambda", "0.3"))
    defaults = {"label": "label", "only": FAST, "seed": 7}
    return SweepRequest(
        data=str(data),
        mechanisms=mechanisms,
        grid=parse_grid(parameter, text),
        **defaults | options,
    )


def bench(request, folder, policy=None):
    """Return what a worker works at, in this process."""
    return Setup(request, request.seed or 0, policy, folder / "generator.npz")
