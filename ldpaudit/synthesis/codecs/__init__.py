"""Tables and images as numbers for a generator, and back.

In: Arrow tables. Out: encoded rows, and tables of exactly the same schema.
"""
