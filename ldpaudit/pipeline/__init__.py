"""An audit from start to end: of one private column of one release."""

# In: what was read, a plan and a policy. Out: one result. What is more than one column is audited
# by what a part of this package registers in the group ``ldpaudit.trees``.
