"""``ldpaudit privatize``: a mechanism applied to a table, batch by batch."""

# In: a table with true labels. Out: the release with its declaration; on request the true labels.
