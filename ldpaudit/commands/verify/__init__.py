"""``ldpaudit verify``: the noise of a release is drawn again from its key, and nothing else."""

# In: a release with its receipt, and the file of true labels with the key. Out: proven, or which
# rows differ.
