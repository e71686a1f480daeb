"""What this audit could have found.

In: the release's size and the claim. Out: the smallest excess of ε found with a stated chance.
"""
