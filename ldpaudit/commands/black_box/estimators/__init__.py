"""Which event tells two inputs of a randomizer apart best, chosen on a sample.

In: tables of outputs. Out: an event that fresh outputs can be tested with.
"""
