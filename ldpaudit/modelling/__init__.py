"""What the models here are built on: encoded features, and training of small networks.

In: feature tables. Out: matrices, and trained networks.
"""
