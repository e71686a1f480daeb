"""Sums of labels over bags: what the sum of a bag reveals about each label in it."""

# In: a release of bags, and what is claimed of its sums. Out: attacks, a bound on ε from the noise.
