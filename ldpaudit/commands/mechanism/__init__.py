"""``ldpaudit mechanism``: exact analysis and design of mechanisms, without a release.

In: a mechanism's parameters, a channel, or a prior, a loss and ε. Out: privacy, error,
the best choice. The only data that may be read is a column for a prior with an ε of its own.
"""
