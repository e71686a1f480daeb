"""Labels on their way into a release: the survey, the prior, the released column.

In: batches of true labels. Out: their codes, and released labels of the same type.
"""
