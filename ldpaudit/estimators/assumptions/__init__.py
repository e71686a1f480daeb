"""Tests of what bounds assume: columns made from the released label, noise shared between rows."""

# In: features, labels and groups as arrays. Out: valid p-values, columns and rows to leave out.
