"""What the classifier and the regressor share: their parameters, and whether they take NaN."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from sklearn.base import BaseEstimator

from ldpaudit.errors import InputError
from ldpaudit.learners.network import NetworkOptions
from ldpaudit.learners.noise_model import Noise, StatedNoise, label_noise
from ldpaudit.learners.noisy_columns import NoisyInputs
from ldpaudit.learners.validation import Seed, checked_rows
from ldpaudit.release import FloatArray


@dataclass(kw_only=True, eq=False, repr=False)
class ReleaseEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of :class:`ReleaseClassifier` and :class:`ReleaseRegressor`."""

    noise: StatedNoise | None = field(default=None, kw_only=False)
    model: str = "boosting"
    penalty: float = 1.0
    rounds: int = 100
    network: NetworkOptions | None = None
    random_state: Seed = 0
    noisy: Mapping[int, Noise] | None = None

    def _noisy(self) -> NoisyInputs | None:
        if not self.noisy:
            return None
        stated: Any = self.noisy
        whole = isinstance(stated, Mapping) and all(
            isinstance(at, Integral) and not isinstance(at, bool) for at in stated
        )
        if not whole:
            raise InputError("The noisy columns are a mapping from positions (0, 1, …) to noise.")
        return NoisyInputs({at: label_noise(one).channel for at, one in self.noisy.items()})

    def _asked(self, X: Any) -> FloatArray:
        """Return checked features of rows to predict, whose noisy columns hold true values."""
        rows, noisy = checked_rows(self, X, nan=self._nan()), self._noisy()
        return rows if noisy is None else noisy.true(rows)

    def _nan(self) -> bool:
        return self.model == "boosting"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._nan()
        return tags
