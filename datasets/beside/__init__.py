"""What comes beside a release: true labels, original rows, priors, canaries, groups.

In: tables and the release's rows. Out: arrays in the release's row order.
"""
