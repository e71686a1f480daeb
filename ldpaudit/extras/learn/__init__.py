"""Learning from a release: ``ldpaudit learn``."""

# In: a release and test rows with true labels. Out: the score of a learner that is corrected for
# the mechanism.
