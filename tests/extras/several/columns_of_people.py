"""Released vectors in memory, made up from a joint law."""

import numpy as np

from ldpaudit.extras.several.files import FileColumns
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import (
    ColumnsDeclaration,
    Declaration,
    FeatureTable,
    LabelDeclaration,
    Release,
    ReleasedLabels,
    TrueLabels,
)

CLASSES = (("a", "b"), ("c", "d", "e"), ("f", "g"))


def true_vectors(n, rng):
    """Return n true vectors of three columns that go along with each other, and a feature."""
    first = rng.integers(0, 2, n)
    second = np.where(rng.random(n) < 0.7, first, rng.integers(0, 3, n))
    third = np.where(rng.random(n) < 0.6, (second > 0).astype(int), rng.integers(0, 2, n))
    x = first + rng.normal(0, 2.0, n)
    return np.stack([first, second, third], axis=1).astype(np.int32), x.astype(np.float32)


def released_vector(n=2_000, seed=0, claimed=(1.0, 1.0, 1.0), used=None, *, truth=True):
    """Return three columns by randomized response with ε ``used``, declared with ``claimed``."""
    rng = np.random.default_rng(seed)
    labels, x = true_vectors(n, rng)
    used = used or claimed
    noisy = [
        RandomizedResponse.from_epsilon(k, e).sample(labels[:, j], rng)
        for j, (k, e) in enumerate(zip(CLASSES, used, strict=True))
    ]
    return vector_of(labels, noisy, x, claimed, truth=truth)


def vector_of(labels, noisy, x, claimed, *, truth=True):
    """Return the vector of released codes, with one public feature."""
    stated = tuple(
        LabelDeclaration(
            f"label{j}",
            Declaration("randomized-response", {"classes": list(CLASSES[j]), "epsilon": epsilon}),
        )
        for j, epsilon in enumerate(claimed)
    )
    columns = []
    for j, one in enumerate(stated):
        rest = [i for i in range(len(claimed)) if i != j]
        features = FeatureTable(
            x[:, None].astype(np.float32),
            np.stack([noisy[i] for i in rest], axis=1).astype(np.int32),
            tuple(len(CLASSES[i]) for i in rest),
            1 + len(rest),
        )
        columns.append(
            Release(
                features=features,
                released=ReleasedLabels(noisy[j].astype(np.int32)),
                outputs=CLASSES[j],
                classes=CLASSES[j],
                truth=TrueLabels(labels[:, j].astype(np.int32)) if truth else None,
                declaration=one.mechanism,
                label=one.label,
            )
        )
    others = ((1, 2),) * len(claimed)
    return FileColumns(tuple(columns), others, ColumnsDeclaration(stated))


def shared_draws(n=2_000, seed=0, epsilon=1.0):
    """Return three columns of which the first and the third were drawn from the same numbers."""
    rng = np.random.default_rng(seed)
    labels, x = true_vectors(n, rng)
    noisy = []
    for j, k in enumerate(CLASSES):
        own = np.random.default_rng((seed, j % 2))
        noisy.append(RandomizedResponse.from_epsilon(k, epsilon).sample(labels[:, j], own))
    return vector_of(labels, noisy, x, (epsilon,) * 3)
