"""Numbers and names in words that never contradict the verdict."""

# In: estimates and strings of a result. Out: text that is safe to print.
