"""The mechanism's own audit: its exact curve, and ε bounded from true or released labels."""

# In: the release and the claim. Out: exact numbers and lower bounds on ε.
