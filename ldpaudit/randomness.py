"""Random generators: one seed, and an independent child for every part of an audit."""

# A child is keyed by a stable name, not by its order, so adding an audit or an attack changes no
# number of another one.

import hashlib

import numpy as np


def child_generator(rng_seed: int, *names: str) -> np.random.Generator:
    """Return the generator that belongs to ``names`` under a root seed.

    Parameters
    ----------
    rng_seed : int
        The root seed, at least 0.
    *names : str
        The stable path of the part that draws, for instance ``"instance-loss", "queries"``.

    Returns
    -------
    numpy.random.Generator
        Always the same one for the same seed and names; independent for different names.
    """
    digest = hashlib.sha256("\x1f".join(names).encode()).digest()
    key = tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))
    return np.random.default_rng(np.random.SeedSequence(entropy=rng_seed, spawn_key=key))


def seed_from(rng: np.random.Generator) -> int:
    """Draw a root seed (an integer in [0, 2**63)) from a generator."""
    return int(rng.integers(0, 2**63, dtype=np.int64))


def integer_seed(rng: np.random.Generator) -> int:
    """Draw a seed below 2**31 for a library that takes no NumPy generator (scikit-learn, faiss)."""
    return int(rng.integers(0, 2**31 - 1))
