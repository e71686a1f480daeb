"""What is known of candidates without drawing any noise: leakage, worth, the least noise.

In: the rows of a private column, a policy's limits and the wanted use. Out: for each mechanism the
largest ε within the limits, with what is given away and what is gained.
"""
