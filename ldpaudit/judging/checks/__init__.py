"""The checks of a policy, one module each; ``listing.py`` has their order."""

# In: a section of the policy and the evidence. Out: a question, a limit and a test at any level.
