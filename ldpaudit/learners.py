"""Learning from noisy releases: scikit-learn estimators corrected for a known mechanism."""

# In: released rows and the mechanism. Out: estimators of the true label, imported on first use:
# scikit-learn takes more than a second to import.

from typing import TYPE_CHECKING

from ldpaudit.lazy import exported

if TYPE_CHECKING:
    from ldpaudit.models.iwp import IWPClassifier, IWPRegressor
    from ldpaudit.models.iwp_losses import (
        ExponentialLoss,
        LogLoss,
        MarginLoss,
        QuadraticLoss,
        noisy_risk_bias,
    )
    from ldpaudit.models.learners import (
        ReleaseClassifier,
        ReleaseRegressor,
        expected_failed_checks,
    )
    from ldpaudit.models.network import NetworkOptions
    from ldpaudit.models.scoring import released_scorer

__all__ = [
    "ExponentialLoss",
    "IWPClassifier",
    "IWPRegressor",
    "LogLoss",
    "MarginLoss",
    "NetworkOptions",
    "QuadraticLoss",
    "ReleaseClassifier",
    "ReleaseRegressor",
    "expected_failed_checks",
    "noisy_risk_bias",
    "released_scorer",
]

__getattr__, _ = exported(
    "ldpaudit.models",
    {
        "learners": ("ReleaseClassifier", "ReleaseRegressor", "expected_failed_checks"),
        "network": ("NetworkOptions",),
        "scoring": ("released_scorer",),
        "iwp": ("IWPClassifier", "IWPRegressor"),
        "iwp_losses": (
            *("ExponentialLoss", "LogLoss", "MarginLoss", "QuadraticLoss", "noisy_risk_bias"),
        ),
    },
)


def __dir__() -> list[str]:
    return __all__
