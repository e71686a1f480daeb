"""The commands: what each does between its options and its page.

In: the options, as one request. Out: a result, written to files and printed as one summary.
Each folder has one shape: request, work, result, page and text. What they share:
places of outputs (``outputs``), a learner scored on test rows (``utility``).
"""
