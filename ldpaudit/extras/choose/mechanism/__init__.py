"""``ldpaudit mechanism describe | design | compose | channel``: exact analysis without a release.

In: parameters; the only data that may be read is a column from which a prior is estimated with a
privacy budget of its own. Out: privacy, error, and the best choice for a prior.
"""
