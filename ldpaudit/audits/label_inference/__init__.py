"""Attacks on labels, compared with their references."""

# In: the release and the claim. Out: accuracy, advantage and AUC of each attack, with intervals.
