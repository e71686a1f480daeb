"""What certified bounds rest on, in the words that the code, the README and the report share."""

from typing import Final

INDEPENDENT: Final = "rows were released independently of each other"
FEATURE_BLIND: Final = "the released label depends on the true label alone, not on the features"
NOT_DERIVED: Final = "no feature was computed from the released label"
