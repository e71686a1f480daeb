"""Boosting that was already fitted to the same numbers with the same settings is not fitted again.

Many tests audit or privatize the same few tables, and half of their time was scikit-learn's. What
is remembered is scikit-learn's own answer to exactly the same question, so no fault of ours can
hide behind it.
"""

import hashlib
import pickle
import sys
import threading
from collections import OrderedDict
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MOST: Final = 100 << 20
"""As many bytes of fits are kept, those used last."""


_BOOSTING: Final = "sklearn.ensemble._hist_gradient_boosting.gradient_boosting"
_known = OrderedDict[bytes, bytes]()
_lock = threading.Lock()


def remember() -> None:
    """Let each fit of boosting be remembered in this process, once scikit-learn is loaded."""
    if _BOOSTING not in sys.modules:
        return
    boosting: Any = sys.modules[_BOOSTING].BaseHistGradientBoosting
    fit = boosting.fit
    if hasattr(fit, "remembers"):
        return

    def remembered(self: Any, X: Any, y: Any, *more: Any, **named: Any) -> Any:
        seed = self.random_state
        asked = not more and not named and not hasattr(self, "_predictors")
        arrays = isinstance(X, np.ndarray) and isinstance(y, np.ndarray)
        if not (asked and arrays and isinstance(seed, int) and X.dtype != object != y.dtype):
            return fit(self, X, y, *more, **named)
        key = _digest(self, X, y)
        with _lock:
            known = _known.pop(key, None)
        if known is None:
            fit(self, X, y)
            known = pickle.dumps(self.__dict__)
        else:
            self.__dict__.update(pickle.loads(known))
        with _lock:
            _known[key] = known
            while sum(map(len, _known.values())) > MOST:
                _known.popitem(last=False)
        return self

    remembered.remembers = True  # type: ignore[attr-defined]
    boosting.fit = remembered


def _digest(model: Any, *arrays: NDArray[Any]) -> bytes:
    digest = hashlib.blake2b(pickle.dumps((type(model), model.get_params())))
    for array in arrays:
        digest.update(repr((array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()
