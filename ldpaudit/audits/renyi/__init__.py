"""Rényi divergences of a release: between labels, and between true and synthetic features."""

# In: the release, and the original rows where given. Out: curves over the order α.
