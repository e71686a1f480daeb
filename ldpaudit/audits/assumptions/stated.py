"""What certified bounds assume, in the words that the code, the README and the report share.

And the ids of the numbers that say whether it holds.
"""

from typing import Final

INDEPENDENT: Final = "rows were released independently of each other"
FEATURE_BLIND: Final = "the released label depends on the true label alone, not on the features"
UNSELECTED: Final = "no row was left out or repeated after the noise because of its released label"
NOT_DERIVED: Final = "no feature was computed from the released label"
REFUTED: Final = " (refuted here)"
NOT_INDEPENDENT: Final = INDEPENDENT + REFUTED

FEATURE_BLIND_TEST: Final = "assumptions.feature_blind"
SHARED_NOISE_TEST: Final = "assumptions.shared_noise"
SHARED_WITH_OTHERS: Final = "assumptions.shared_with_others"
"""P-values: the channel uses no feature; rows share no noise; not with another person's row."""
AGREEMENT_TEST: Final = "assumptions.agreement_along_the_file"
"""Without true labels, a p-value: released labels go with features alike along the file."""
DERIVED_COLUMNS: Final = "assumptions.derived_columns"
COMPOSED_EPSILON: Final = "assumptions.composed_epsilon"
RARE_CLASSES: Final = "mechanism.rare_classes"
COUNTED_ROWS: Final = "assumptions.counted_rows"
DOUBTFUL_COLUMNS: Final = "assumptions.doubtful_columns"
DOUBTFUL_ROWS: Final = "assumptions.doubtful_rows"
CHANGED_ROWS: Final = "assumptions.changed_rows"
SELECTED: Final = "assumptions.selected"
"""There where these rows do not show whether the channel uses features."""
