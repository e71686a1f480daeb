"""``design``: all mechanisms compared for a prior, a loss and ε.

In: labels, their prior, a loss, ε. Out: every candidate's expected loss, the best ones marked.
"""
