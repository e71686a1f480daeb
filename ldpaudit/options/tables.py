"""What Python callers may give as a table, as labels, or as probabilities."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Union, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd
    import pyarrow as pa


@runtime_checkable
class ArrowStream(Protocol):
    """A table of another library, such as Polars or DuckDB, that offers its columns to Arrow."""

    def __arrow_c_stream__(self, requested_schema: object = None, /) -> object:
        """Return a capsule of an Arrow stream."""


Table: TypeAlias = Union[str, "os.PathLike[str]", "pd.DataFrame", "pa.Table", ArrowStream]
"""A path, a URL, or a table in memory."""
Labels: TypeAlias = Union[Table, "pd.Series[Any]", "npt.NDArray[np.generic]"]
"""Labels of n rows: a table with a column of them, or labels alone, of shape (n,)."""
LabelsOfEach: TypeAlias = Sequence[Labels]
"""Labels for each of several releases, in their order."""
Probabilities: TypeAlias = Union[Table, "npt.NDArray[np.floating]"]
"""A probability for each of n rows and k classes: a table, or an array of shape (n, k)."""
