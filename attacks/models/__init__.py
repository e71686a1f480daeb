"""What attacks learn: models of the true label given the features.

In: features and labels, true or released. Out: class probabilities.
"""
