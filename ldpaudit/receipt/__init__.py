"""The receipt of a release: its noise is drawn from a key, committed to, and can be drawn again."""

# In: a release with its receipt, and the file of true labels with the key. Out: which released
# labels are what the declared mechanism draws. docs/receipt.md writes the scheme down to the bit.
