"""``ldpaudit privatize``: a mechanism applied to a table, batch by batch.

In: a table with true labels and a mechanism. Out: a release with its declaration inside.
"""
