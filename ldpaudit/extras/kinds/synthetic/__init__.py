"""Synthetic feature rows: are they realistic, and what do they reveal of whom they replace?"""

# In: released and original features, and perhaps rows of other people. Out: estimates, certified
# shares, and a label-inference attack that recognises replaced rows.
