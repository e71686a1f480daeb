"""``ldpaudit mechanism audit``: the audit of any randomizer by its outputs alone.

In: a function that draws outputs, and inputs to tell apart. Out: a certified lower bound of its ε.
"""
