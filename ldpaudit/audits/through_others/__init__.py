"""What a private column loses through the other released columns.

In: a column with the other noisy columns beside it. Out: how much better it is guessed with them,
how much more its people lose, and what ε can become through them.
"""
