"""Files of other packages: statistics packages, workbooks, arrays of NumPy, ORC."""

# In: a file, or a table that becomes one. Out: its rows, or the file.
