"""All private columns together: the vector's ε, and whether the columns' draws are as declared."""
