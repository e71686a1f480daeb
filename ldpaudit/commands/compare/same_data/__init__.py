"""Whether the compared releases were made from the same data.

In: the releases. Out: a verdict with its reason, reached without looking at a true label.
"""
