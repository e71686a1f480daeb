"""Tables besides Parquet, CSV and Feather: JSON lines, workbooks, ORC, NumPy, statistics files."""

# In: a file, or a table that becomes one. Out: its rows, or the file.
