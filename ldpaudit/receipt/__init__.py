"""The receipt of a release: the commitment to its key, and what drawing its noise again found."""

# In: a key and what is released, and what was found. Out: the commitment; the verdict on the noise
# in words. What draws the noise again is a part of this package, which the core finds by
# :mod:`ldpaudit.receipt.seam`. docs/receipt.md writes the scheme down to the bit.
