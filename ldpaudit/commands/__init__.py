"""The commands: what each does between its options and its page."""

# In: the options, as one request. Out: a result, which says itself what is stored, printed and
# shown (``shell.Told``); ``shell.carry_out`` writes its files and prints it. Each folder has one
# shape: request, work, result. What they share: places of outputs (``outputs``), a learner scored
# on test rows (``utility``).
