"""What a single column, a neighbouring row or the order of the rows reveals about the label.

In: columns and labels as arrays. Out: shares of labels that are told; no file, no column name.
"""
