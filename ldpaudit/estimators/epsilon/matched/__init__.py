"""The lower bound on ε for each row's own channel, against matched rows.

In: rows with their claimed channels. Out: a bound and its power.
"""
