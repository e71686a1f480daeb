"""``ldpaudit compare``: releases of the same data, side by side."""

# In: releases or stored results. Out: differences of leakage, of attacks and of what can be learnt.
