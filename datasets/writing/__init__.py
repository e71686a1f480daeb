"""Writing releases: each file whole or not at all.

In: tables or batches. Out: Parquet and CSV files.
"""
