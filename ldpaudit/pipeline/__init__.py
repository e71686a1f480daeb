"""An audit from start to end: of a tree of private columns and releases."""

# In: what was read, a plan and a policy. Out: one result, in which that of each part is held.
