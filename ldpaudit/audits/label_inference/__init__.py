"""Attacks on labels, held against their references.

In: the release and the claim. Out: accuracy, advantage and AUC of each attack, with intervals.
"""
