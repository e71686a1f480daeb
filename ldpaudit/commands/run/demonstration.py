"""The files of the demonstration: an honest release, and one that leaks more than it declares."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldpaudit.errors import OutputError
from ldpaudit.files.writing import WholeFiles
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.randomness import child_generator
from ldpaudit.release import Declaration

if TYPE_CHECKING:
    import pyarrow as pa

CLAIMED_EPSILON = 1.0
DISHONEST_EPSILON = 3.0


class DemoFiles(NamedTuple):
    """The demonstration's files: two releases, and the true labels of both."""

    honest: Path
    dishonest: Path
    truth: Path


def demo_tables(seed: int) -> "tuple[pa.Table, pa.Table, pa.Table]":
    """Return the two releases and the truth, made of the embedded sample.

    Both releases declare randomized response with ε = 1; the second was made with ε = 3.
    """
    import pyarrow as pa

    from ldpaudit.datasets.sample import CLASSES, LABEL, affairs

    features, labels = affairs()
    # The survey is sorted by the answer, so the order of its rows would tell every one.
    order = child_generator(seed, "demo", "order").permutation(len(labels))
    features, labels = features.iloc[order], labels[order]
    codes = np.array([CLASSES.index(label) for label in labels], dtype=np.int32)
    honest, dishonest = (
        _release(features, codes, epsilon, child_generator(seed, "demo", name))
        for name, epsilon in (("honest", CLAIMED_EPSILON), ("dishonest", DISHONEST_EPSILON))
    )
    return honest, dishonest, pa.table({LABEL: labels})


def write_demo(folder: Path, seed: int) -> DemoFiles:
    """Write the demonstration's files into a folder, which is made if needed."""
    from ldpaudit.datasets.writing.tables import write_table

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"The folder cannot be made ({type(error).__name__}).") from None
    names = ("honest.parquet", "dishonest.parquet", "truth.parquet")
    paths = [folder / name for name in names]
    with WholeFiles() as files:
        for path, table in zip(paths, demo_tables(seed), strict=True):
            write_table(table, files.add(path))
    return DemoFiles(*paths)


def _release(features: Any, codes: Any, epsilon: float, rng: np.random.Generator) -> "pa.Table":
    import pyarrow as pa

    from ldpaudit.datasets import declare
    from ldpaudit.datasets.sample import CLASSES, LABEL

    released = RandomizedResponse.from_epsilon(CLASSES, epsilon).sample(codes, rng)
    table = pa.Table.from_pandas(features, preserve_index=False).replace_schema_metadata(None)
    table = table.append_column(LABEL, pa.array([CLASSES[code] for code in released]))
    claim = RandomizedResponse.from_epsilon(CLASSES, CLAIMED_EPSILON)
    parameters = {"classes": list(CLASSES), "epsilon": CLAIMED_EPSILON}
    return declare(table, Declaration(claim.name, parameters), LABEL)
