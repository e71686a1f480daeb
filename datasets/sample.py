"""The embedded sample: a survey with a sensitive answer, shipped with statsmodels.

R. C. Fair, "A Theory of Extramarital Affairs", Journal of Political Economy 86 (1978): 6,366
married women, eight features, and whether they had an affair.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

LABEL = "affair"
CLASSES = ("no", "yes")


def affairs() -> "tuple[pd.DataFrame, npt.NDArray[Any]]":
    """Return the survey: features, and the sensitive label.

    Returns
    -------
    features : pandas.DataFrame of shape (6366, 8)
        Numbers: age, years married, children, …
    labels : array of shape (6366,)
        ``"yes"`` (32.2 %) or ``"no"``, as Python strings.
    """
    from statsmodels.datasets import fair

    data = fair.load_pandas().data
    labels = np.where(data["affairs"] > 0, CLASSES[1], CLASSES[0]).astype(object)
    return data.drop(columns="affairs"), labels
