"""The embedded sample: a survey with a sensitive answer."""

# R. C. Fair, "A Theory of Extramarital Affairs", Journal of Political Economy 86 (1978): 6,366
# married women, eight features, and whether they had an affair. ``affairs.txt`` states the source
# and the licence of the file.

from importlib.resources import files
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

    Examples
    --------
    >>> from ldpaudit.datasets import affairs
    >>> features, labels = affairs()
    >>> features.shape
    (6366, 8)
    """
    import pandas as pd

    with files("ldpaudit.datasets").joinpath("affairs.csv.gz").open("rb") as file:
        data = pd.read_csv(file, compression="gzip", dtype=np.float64)
    labels = np.where(data["affairs"] > 0, CLASSES[1], CLASSES[0]).astype(object)
    return data.drop(columns="affairs"), labels
