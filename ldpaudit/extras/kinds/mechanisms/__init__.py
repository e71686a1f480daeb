"""Mechanisms that a core audit rarely meets: each is a module with its families."""

# In: a declaration or options. Out: a frozen value that answers for itself, as in
# ``ldpaudit.mechanisms``.
