"""What any attack on labels can reach: exact values and ceilings.

In: posteriors and channels. Out: accuracies and advantages.
"""
