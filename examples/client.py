"""Randomizers of a client, for a black-box audit: from (value, n, rng) to n outputs."""

import numpy as np

LABELS = 25
EPSILON = 1.0


def sue(value: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Symmetric unary encoding: one bit for each label, each flipped with the same probability."""
    keep = 1 / (1 + np.exp(-EPSILON / 2))
    bits = np.zeros((n, LABELS), dtype=bool)
    bits[:, value] = True
    return bits ^ (rng.random((n, LABELS)) > keep)


def careless(value: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """As above, with a mistake: ε where ε/2 belongs, so that outputs tell twice as much."""
    keep = 1 / (1 + np.exp(-EPSILON))
    bits = np.zeros((n, LABELS), dtype=bool)
    bits[:, value] = True
    return bits ^ (rng.random((n, LABELS)) > keep)
