"""``ldpaudit advise``: what to release instead, so that a policy lets it pass.

In: a table with true labels and a policy. Out: the mechanisms and noise that keep most of the
table's use, with utility and leakage beside each other and the command to make each.
"""
