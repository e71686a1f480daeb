import numpy as np
import pandas as pd
from statsmodels.datasets import fair

from ldpaudit.datasets import affairs


def test_the_survey() -> None:
    features, labels = affairs()
    assert features.shape == (6366, 8)
    assert "affairs" not in features.columns
    assert set(labels) == {"no", "yes"}
    assert np.mean(labels == "yes") == 2053 / 6366


def test_it_is_the_table_of_statsmodels() -> None:
    data = fair.load_pandas().data
    features, labels = affairs()
    pd.testing.assert_frame_equal(features, data.drop(columns="affairs"), check_exact=True)
    assert ((labels == "yes") == (data["affairs"] > 0)).all()
