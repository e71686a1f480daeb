"""Charts as static SVG, each with its data table."""

# In: numbers of a result. Out: figures that a page can hold.
