"""Which of scikit-learn's checks of estimators do not apply to a learner, and why."""

from collections.abc import Mapping
from typing import Any, Final

_WEIGHTS: Final = "check_sample_weight_equivalence_on_dense_data"
_IN_BATCHES: Final = "rows are taken in batches of a given size"
_NEARLY: Final = "the descent stops within 1e-7 of the minimum, the check asks for less"
_ROUNDED: Final = "single precision: how a matrix product rounds depends on the number of rows"
_LABELS: Final = "the check's labels are not those that the mechanism declares"
_KEPT: Final = "a mechanism keeps what it has computed; its parameters do not change"
_SHARP: Final = "the check's labels carry no noise, so undoing some gives others"
_ORDERS: Final = ("check_methods_sample_order_invariance", "check_methods_subset_invariance")
_OVERWRITE: Final = "check_estimators_overwrite_params"
_WITH_OTHER_LABELS: Final = (
    *_ORDERS,
    _OVERWRITE,
    _WEIGHTS,
    "check_classifier_data_not_an_array",
    "check_classifier_not_supporting_multiclass",
    "check_classifiers_classes",
    "check_classifiers_regression_target",
    "check_classifiers_train",
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_partial_fit_n_features",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_regressor_data_not_an_array",
    "check_regressors_int",
    "check_regressors_no_decision_function",
    "check_regressors_train",
    "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_not_overwritten",
    "check_sample_weights_pandas_series",
    "check_sample_weights_shape",
    "check_supervised_y_2d",
)
"""The checks that learn from labels of their own."""


def expected_failed_checks(learner: Any) -> dict[str, str]:
    """Return the checks that do not apply to a learner, each with the reason.

    Parameters
    ----------
    learner : estimator
        One of this package.

    Returns
    -------
    dict from str to str
        For ``expected_failed_checks`` of ``sklearn.utils.estimator_checks.check_estimator`` and
        ``parametrize_with_checks`` (scikit-learn 1.6 and later).

    Examples
    --------
    >>> from ldpaudit.learners import ReleaseClassifier, expected_failed_checks
    >>> expected_failed_checks(ReleaseClassifier(model="boosting"))
    {}
    >>> list(expected_failed_checks(ReleaseClassifier({"name": "rr", "epsilon": 1.0})))
    ['check_sample_weight_equivalence_on_dense_data']
    """
    model, noise = getattr(learner, "model", "in batches"), learner.noise
    expected: dict[str, str] = {}
    if model in ("in batches", "network"):
        expected[_WEIGHTS] = _IN_BATCHES
    if model == "network":
        expected |= dict.fromkeys(_ORDERS, _ROUNDED)
    if model == "logistic":
        expected[_WEIGHTS] = _NEARLY
    if isinstance(noise, Mapping) and not hasattr(learner, "predict_proba"):
        expected |= dict.fromkeys(("check_fit2d_1sample", "check_regressors_train"), _SHARP)
    elif noise is not None and not isinstance(noise, Mapping):
        expected |= dict.fromkeys(_WITH_OTHER_LABELS, _LABELS) | {_OVERWRITE: _KEPT}
    return expected
