"""Features on their way into a release: unchanged, noisy, synthetic or withheld.

In: batches of true features. Out: released features of as many rows.
"""
