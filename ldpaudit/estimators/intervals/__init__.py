"""Confidence bounds for proportions, means, odds ratios and rankings."""

# In: counts or bounded values, and an error probability. Out: one-sided bounds.
