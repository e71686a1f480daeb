"""Exact analysis and design of mechanisms: from parameters to privacy, error and the best choice.

Nothing here looks at a release; the only data that may be read is a column from which a prior is
estimated with a privacy budget of its own.
"""
