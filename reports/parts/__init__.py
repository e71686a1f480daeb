"""The parts of the report that hold numbers, one for each section of a result.

In: the estimates, curves and histograms of a section. Out: figures, tables and words.
"""
