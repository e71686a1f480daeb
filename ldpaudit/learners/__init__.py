"""Learning from noisy releases: losses and learners corrected for a known mechanism.

The names are imported on first use: scikit-learn takes more than a second to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ldpaudit.learners.classifier import ReleaseClassifier
    from ldpaudit.learners.iwp.classifier import IWPClassifier
    from ldpaudit.learners.iwp.regressor import IWPRegressor
    from ldpaudit.learners.regressor import ReleaseRegressor

__all__ = ["IWPClassifier", "IWPRegressor", "ReleaseClassifier", "ReleaseRegressor"]

_HOMES: Final = {
    "ReleaseClassifier": "classifier",
    "ReleaseRegressor": "regressor",
    "IWPClassifier": "iwp.classifier",
    "IWPRegressor": "iwp.regressor",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
