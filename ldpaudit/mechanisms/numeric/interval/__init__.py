"""The linear program behind the optimal unbiased randomizer.

In: labels, a prior and ε. Out: an optimal channel with few outputs.
"""
