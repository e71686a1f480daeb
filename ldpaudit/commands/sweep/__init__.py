"""``ldpaudit sweep``: simulate, audit and learn over a grid of noise, before any release.

In: a table with true labels, mechanisms and a grid of λ or ε. Out: leakage against utility, and the
least noise that satisfies a policy.
"""
