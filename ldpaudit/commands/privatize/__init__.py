"""``ldpaudit privatize``: a mechanism applied to a table, batch by batch."""
