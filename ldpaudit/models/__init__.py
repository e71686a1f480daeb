"""Everything that is fitted: encoders, models of labels, and learners corrected for a mechanism."""

# In: features, and labels as they were released. Out: P(true label | features), or numbers.
