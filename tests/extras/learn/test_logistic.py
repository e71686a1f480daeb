import numpy as np
from scipy.optimize import approx_fprime

from ldpaudit.extras.learn.logistic import TargetLoss


def test_the_gradient_of_soft_labels_of_any_sign():
    rng = np.random.default_rng(2)
    loss, logits = TargetLoss(rng.normal(size=(7, 3))), rng.normal(size=(3, 7))
    numeric = approx_fprime(logits.ravel(), lambda flat: loss(flat.reshape(3, 7))[0], 1e-7)
    np.testing.assert_allclose(loss(logits)[1].ravel() / 7, numeric, atol=1e-6)
