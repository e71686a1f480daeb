"""``ldpaudit sweep``: simulate, audit and learn over a grid of noise, before any release."""

# In: a table with true labels, mechanisms and a grid. Out: leakage and utility at every point, and
# the least noise that meets a policy.
