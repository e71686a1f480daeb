"""Learning by the inverse Weierstrass transform of a loss, for features with Gaussian noise.

In: noisy features and labels. Out: scikit-learn estimators.
"""
