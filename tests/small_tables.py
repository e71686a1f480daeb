"""Small tables with privatised labels, for audits that are run hundreds of times."""

import numpy as np
import pandas as pd


def small_table(
    rng: np.random.Generator, rows: int = 40, labels: str = "abc"
) -> tuple[pd.DataFrame, pd.Series]:
    """Return released rows and their true labels, by randomized response with λ = 0.4."""
    shares = rng.dirichlet(np.full(len(labels), 2.0))
    truth = rng.choice(list(labels), rows, p=shares)
    drawn = rng.random(rows) < 0.4
    released = np.where(drawn, rng.choice(list(labels), rows), truth)
    x = np.round(rng.normal(size=rows) + (truth == labels[0]), 1)
    return pd.DataFrame({"label": released, "x": x}), pd.Series(truth)
