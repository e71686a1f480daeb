"""The types of arrays and of single labels that the whole package uses."""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]
IndexArray = npt.NDArray[np.int64]
SeedArray = npt.NDArray[np.uint32]
WordArray = npt.NDArray[np.uint64]

Label = str | int | float | bool
"""One label value as the file holds it."""
