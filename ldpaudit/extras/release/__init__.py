"""``privatize``, and the generators of synthetic features."""

# In: a table with true labels, and mechanisms. Out: the release with its declaration, and the
# secret file.
