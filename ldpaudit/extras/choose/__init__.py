"""Before a release: ``sweep``, ``advise`` and the exact analysis of mechanisms."""

# In: a table with true labels, or a mechanism's name and parameters. Out: what each setting reveals
# and is of use for, and which to take.
