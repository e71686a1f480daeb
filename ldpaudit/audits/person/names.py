"""The ids of what is found of columns and releases of a person together."""

from typing import Final

EPSILON: Final = "person.epsilon"
LOWER: Final = "person.epsilon_lower"
RELEASE_ONLY: Final = "person.release_only_epsilon_lower"
EXCESS: Final = "person.min_detectable_excess"
DRAWS: Final = "person.independence"
