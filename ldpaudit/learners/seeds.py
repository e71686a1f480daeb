"""scikit-learn's ``random_state`` as a generator of this project."""

import numpy as np

Seed = int | np.random.Generator | None


def generator(random_state: Seed) -> np.random.Generator:
    """Return a generator: a new one for a seed, the given one, or an unseeded one for None."""
    return np.random.default_rng(random_state)
