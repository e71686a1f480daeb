"""``ldpaudit run``: the audit of one release."""

# In: a request. Out: the report, the stored result and the summary on the terminal.
