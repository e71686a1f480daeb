"""Mechanisms that release one statistic for a bag of people.

In: labels and their bags. Out: the bag's noisy statistic in each of its rows.
"""
