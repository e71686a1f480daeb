"""How useful a release still is: models trained on it, scored on test rows.

In: a release and test rows. Out: scores, one per row, ready to be paired.
"""
