"""All private columns together: the vector's ε, and whether the columns' draws are as declared.

In: a released vector, its true labels where they are known, and its declaration. Out: bounds of the
vector's ε, and a p-value of its draws.
"""
