"""Tables written as files, each whole or not at all, with their declaration in or beside them.

In: tables, or batches of rows. Out: Parquet, Feather, CSV and JSON lines.
"""
