"""Lower bounds on ε in nats, tests of a claimed channel, and their power."""

# In: counts of true and released labels. Out: bounds at a stated level.
