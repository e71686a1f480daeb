"""Guessable noise: is it that of a common random generator with a seed that people choose?

In: a release. Out: a p-value over all seeds tried.
"""
