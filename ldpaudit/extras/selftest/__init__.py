"""``ldpaudit selftest``: planted releases, honest and leaking, audited on this installation."""

# In: a seed and how long it may take. Out: how often certified bounds held, honest releases were
# accused and leaks were found, each held against what is documented.
