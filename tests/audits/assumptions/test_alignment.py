"""True labels of other rows, or in another order, end the audit with a reason."""

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.errors import InputError


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (lambda y, _: np.roll(y, 1), "shifted by one row: they fit the claim for the rows before"),
        (lambda y, _: np.roll(y, -2), "shifted by 2 rows: they fit the claim for the rows after"),
        (lambda y, rng: rng.permutation(y), "reveal nothing about the released ones"),
    ],
)
def test_true_labels_of_other_rows_are_an_input_error(order, words) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=1000)
    kept = rng.random(1000) < np.e / (1 + np.e)
    table = pd.DataFrame({"a": rng.normal(size=1000), "label": np.where(kept, truth, 1 - truth)})
    with pytest.raises(InputError, match=words):
        ldpaudit.audit(
            table,
            pd.Series(order(truth, rng), name="label"),
            mechanism="rr",
            label="label",
            epsilon=1.0,
            only=["mechanism"],
        )
