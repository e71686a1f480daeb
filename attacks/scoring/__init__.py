"""How attacks are scored: counts on held-out folds, then measures with bounds.

In: posteriors and true labels. Out: accuracy, advantage, AUC and others.
"""
