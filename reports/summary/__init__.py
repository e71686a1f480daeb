"""The short sections of the page of an audit: a few sentences and one picture each.

In: a result and its printer. Out: plain words, with the numbers that matter; the parts hold all.
"""
