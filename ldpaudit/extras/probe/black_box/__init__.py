"""``ldpaudit mechanism audit``: any randomizer, by its outputs alone."""

# In: a function and inputs for it. Out: a certified lower bound on ε, and the event that gave it.
