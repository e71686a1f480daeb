"""Noise on features: is there as much of it as claimed, and what is its ε at least?"""

# In: true and noisy features, and the claimed noise. Out: bounds of ε, and a test of the claim.
