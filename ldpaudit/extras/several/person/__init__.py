"""Several answers of a person together: columns of a release, releases of a column, and both."""

# In: what was released of the same people, and what is claimed of it. Out: ε of all together, exact
# and bounded, how the noise goes together, and labels guessed from all releases.
