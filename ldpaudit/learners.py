"""Learning from noisy releases: scikit-learn estimators corrected for a known mechanism."""

# In: released rows and the mechanism. Out: estimators of the true label, imported on first use:
# scikit-learn takes more than a second to import.

from ldpaudit.lazy import exported

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

_LEARN = "ldpaudit.extras.learn"
__getattr__, __dir__ = exported(
    __name__,
    {
        "ldpaudit.models.network": ("NetworkOptions",),
        f"{_LEARN}.learners": ("ReleaseClassifier", "ReleaseRegressor", "expected_failed_checks"),
        f"{_LEARN}.scoring": ("released_scorer",),
        f"{_LEARN}.iwp": ("IWPClassifier", "IWPRegressor"),
        f"{_LEARN}.iwp_losses": (
            *("ExponentialLoss", "LogLoss", "MarginLoss", "QuadraticLoss", "noisy_risk_bias"),
        ),
    },
)
