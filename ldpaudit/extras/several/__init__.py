"""Several answers of a person: columns of a file, releases of a column, strata."""

# In: files, and what is claimed of them. Out: one result, in which that of each part is held. The
# core finds it by the entry point ``several`` in the group ``ldpaudit.trees``.
