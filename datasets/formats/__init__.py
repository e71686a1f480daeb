"""Files of tables: where they lie, and how they are read.

In: a path or URL. Out: columns, whole or in batches.
"""
