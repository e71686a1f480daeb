"""The privacy loss of single people by nearest neighbours."""

# In: the release and the claim. Out: J(τ), E[ν], and bounds on both.
