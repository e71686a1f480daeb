"""The game against a mechanism whose channel depends on the features."""

# In: the public model, canaries or true labels. Out: a lower bound on ε, with its power.
