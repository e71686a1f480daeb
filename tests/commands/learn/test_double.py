"""A learner under double randomized response takes the loss that does better on rows held out."""

import numpy as np
import pyarrow as pa
import pytest

from ldpaudit.commands.utility.learner import Learner
from ldpaudit.commands.utility.scores import utility
from ldpaudit.datasets import read_release
from ldpaudit.mechanisms.with_features import DoubleRR
from ldpaudit.release import Declaration
from ldpaudit.synthesis import generator

CLASSES = ("no", "yes")


def table(rows: int, rng: np.random.Generator) -> tuple[pa.Table, np.ndarray]:
    """Return features that say a little of a label of which one in five is a yes."""
    codes = (rng.random(rows) < 0.2).astype(np.int32)
    x = rng.normal(size=(rows, 4)) + 0.5 * codes[:, None]
    return pa.table({f"x{j}": x[:, j] for j in range(4)}), codes


def labelled(features: pa.Table, codes: np.ndarray) -> pa.Table:
    return features.append_column("label", pa.array([CLASSES[code] for code in codes]))


@pytest.mark.parametrize("noise", [0.3, 0.8])
def test_the_chosen_loss_is_not_far_below_the_better_one(noise):
    rng = np.random.default_rng(int(10 * noise))
    claim = DoubleRR(CLASSES, noise)
    public, test = table(2_000, rng), table(4_000, rng)
    own, codes = table(5_000, rng)
    made = generator("mixture", trained_on="public").fit(*public, 2, rng=rng)
    asked = rng.integers(0, 2, len(codes)).astype(np.int32)
    drawn = claim.sample(codes, asked, rng)
    synthetic = made.sample(asked, rng)
    places = np.arange(len(codes))
    rows = np.where(drawn.synthetic_rows >= 0, len(codes) + drawn.synthetic_rows, places)
    released = pa.concat_tables([own, synthetic.cast(own.schema)]).take(rows)
    reading = read_release(
        labelled(released, drawn.labels),
        label="label",
        declaration=Declaration("double-rr", {"classes": list(CLASSES), "lambda": noise}, "api"),
        synthetic=labelled(synthetic, asked),
        test=labelled(*test),
    )
    found = utility(reading.release, reading.test, Learner("logistic"), 0.95, rng)
    by_id = {one.id: one.value for one in found.beside}
    # At λ = 0.8 the unbiased loss alone is right for 67 to 73 % of such rows.
    assert found.correction.name == ("unbiased" if noise < 0.5 else "backward")
    assert found.estimate.value > by_id["test_constant"] + (0.005 if noise < 0.5 else -0.01)
    if noise < 0.5:
        assert by_id["test_auc"] > 0.7
    # Either it is better than a constant, or it says that it is not.
    assert bool(found.warnings) == (found.estimate.value <= by_id["test_constant"])
