"""Drawing the noise of a release again from its committed key; ``ldpaudit verify``."""

# In: a release with its receipt, and the file of true labels with the key. Out: which released
# labels are what the declared mechanism draws. The core finds it by the entry point ``drawn-again``
# in the group ``ldpaudit.receipts``.
