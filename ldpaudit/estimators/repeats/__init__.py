"""Several releases of the same people: ε of all together, and how their noise goes together.

In: codes of true and released labels, release by release, and the claimed channels. Out: bounds of
ε, exact tests of fresh, remembered and reused noise, and guesses from all releases.
"""
