"""What the tests remember of boosting is what scikit-learn would have fitted."""

import boosting_memory
import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

RNG = np.random.default_rng(1)
FEATURES = RNG.standard_normal((200, 3)).astype(np.float32)
LABELS = (FEATURES[:, 0] + RNG.standard_normal(200) > 0).astype(np.int32)
OTHERS = 1 - LABELS


def fitted(features=FEATURES, labels=LABELS, **settings):
    model = HistGradientBoostingClassifier(**{"max_iter": 3, "random_state": 1} | settings)
    return model.fit(features, labels)


@pytest.fixture(autouse=True)
def _nothing_is_known():
    boosting_memory.remember()
    boosting_memory._known.clear()


def test_the_same_question_has_the_same_answer_and_its_own_model():
    one, other = fitted(), fitted()
    assert len(boosting_memory._known) == 1
    assert one._predictors is not other._predictors
    np.testing.assert_array_equal(one.predict_proba(FEATURES), other.predict_proba(FEATURES))
    more = fitted(warm_start=True)
    more.max_iter = 6
    assert (more.fit(FEATURES, LABELS).n_iter_, fitted(warm_start=True).n_iter_) == (6, 3)


def test_any_other_question_is_asked():
    asked = [
        fitted(),
        fitted(FEATURES[:, ::-1]),
        fitted(FEATURES.astype(np.float64)),
        fitted(labels=OTHERS),
        fitted(max_leaf_nodes=3),
        fitted(random_state=2),
        fitted(categorical_features=np.array([False, False, False])),
    ]
    assert len(boosting_memory._known) == len(asked)
    np.testing.assert_array_equal(asked[3].predict(FEATURES), 1 - asked[0].predict(FEATURES))


def test_what_no_seed_decides_is_not_remembered():
    fitted(random_state=None)
    HistGradientBoostingClassifier(random_state=1).fit(FEATURES, LABELS, np.ones(200))
    assert not boosting_memory._known
