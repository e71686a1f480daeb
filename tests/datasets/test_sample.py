import numpy as np

from ldpaudit.datasets import affairs


def test_the_survey() -> None:
    features, labels = affairs()
    assert features.shape == (6366, 8)
    assert "affairs" not in features.columns
    assert set(labels) == {"no", "yes"}
    assert np.mean(labels == "yes") == 2053 / 6366
