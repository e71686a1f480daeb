"""Learning from noisy releases: losses and learners corrected for a known mechanism.

In: released rows and the mechanism. Out: scikit-learn estimators of the true label, imported on
first use: scikit-learn takes more than a second to import.
"""

from typing import TYPE_CHECKING

from ldpaudit.lazy import exported

if TYPE_CHECKING:
    from ldpaudit.learners.classifier import ReleaseClassifier
    from ldpaudit.learners.compatibility import expected_failed_checks
    from ldpaudit.learners.iwp.estimators import IWPClassifier, IWPRegressor
    from ldpaudit.learners.iwp.losses import noisy_risk_bias
    from ldpaudit.learners.regressor import ReleaseRegressor

__all__ = [
    "IWPClassifier",
    "IWPRegressor",
    "ReleaseClassifier",
    "ReleaseRegressor",
    "expected_failed_checks",
    "noisy_risk_bias",
]

__getattr__, __dir__ = exported(
    __name__,
    {
        "classifier": ("ReleaseClassifier",),
        "compatibility": ("expected_failed_checks",),
        "regressor": ("ReleaseRegressor",),
        "iwp.estimators": ("IWPClassifier", "IWPRegressor"),
        "iwp.losses": ("noisy_risk_bias",),
    },
)
