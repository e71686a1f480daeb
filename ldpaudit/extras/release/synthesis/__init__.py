"""Conditional feature generators for double randomized response: ``ldpaudit.synthesis``."""

# In: feature tables with labels. Out: synthetic rows of the same schema, given a label.
