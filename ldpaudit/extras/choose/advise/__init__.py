"""``ldpaudit advise``: which release meets a policy."""

# In: a table with true labels and a policy. Out: the mechanisms and noise that keep most of the
# table's use, with utility and leakage side by side and the command to make each.
