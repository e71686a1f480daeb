"""Is the noise that of a common random generator with a seed that can be guessed?

In: outcomes of rows in order. Out: a valid p-value over all seeds tried. Generators are computed
for many seeds at once, bit for bit as the originals.
"""
