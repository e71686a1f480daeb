"""What holds the tests' keywords to the annotations can say no."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from annotated import believed

from ldpaudit.options import AuditOptions

OPTIONS = {field.name: field.type for field in fields(AuditOptions)}
SERIES, ARRAY = pd.Series(["a"]), np.array(["a"])


@pytest.mark.parametrize(
    ("name", "taken", "refused"),
    [
        ("truth", [None, "t.csv", SERIES, ARRAY, [SERIES, "t.csv"]], [5, 1.5, [1.5]]),
        ("original", [None, "o.csv", SERIES.to_frame()], [5, ["o.csv"]]),
        ("only", ["mechanism", ["mechanism"], ()], [None, 3, [3]]),
        ("queries", [None, "all", 5, np.int64(5)], ["some", 1.5, True]),
        ("smoothness", [None, 1, 0.5, np.float32(0.5)], ["1", True]),
        ("exact", [True, np.bool_(False)], [1, None]),
    ],
)
def test_values_are_what_the_annotation_says(name, taken, refused):
    assert all(believed(value, OPTIONS[name]) for value in taken)
    assert not any(believed(value, OPTIONS[name]) for value in refused)
