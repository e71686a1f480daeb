"""``ldpaudit declare``: says inside or beside a released file what made its labels."""

# In: a file and a claim. Out: the file with the claim, or what it declares already.
