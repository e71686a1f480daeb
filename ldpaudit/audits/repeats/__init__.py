"""Several releases of the same people: what all of them together give away.

In: the releases, which row is whose, and what is claimed of the noise. Out: who is in which, ε of
all together, exact and bounded, how the noise goes together, and labels guessed by vote.
"""
