"""Large files, batch by batch: features straight into two blocks, labels straight into codes.

In: a file and the names of its columns. Out: the same arrays as from a small file read whole.
"""
