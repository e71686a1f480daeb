"""Mechanisms that add noise to a numeric label, and the laws of the noise.

In: numbers in a declared range. Out: noisy numbers, and their exact law.
"""
