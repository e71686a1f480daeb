"""What the classifier and the regressor share: their parameters, and whether they take NaN."""

from dataclasses import dataclass, field
from typing import Any

from sklearn.base import BaseEstimator

from ldpaudit.learners.network import NetworkOptions
from ldpaudit.learners.noise_model import StatedNoise
from ldpaudit.learners.validation import Seed


@dataclass(kw_only=True, eq=False, repr=False)
class ReleaseEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of :class:`ReleaseClassifier` and :class:`ReleaseRegressor`."""

    noise: StatedNoise | None = field(default=None, kw_only=False)
    model: str = "boosting"
    penalty: float = 1.0
    rounds: int = 100
    network: NetworkOptions | None = None
    random_state: Seed = 0

    def _nan(self) -> bool:
        return self.model == "boosting"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._nan()
        return tags
