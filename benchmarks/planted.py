"""Tables with known labels that cases release: public ones, Gaussian classes, files on disk."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.runner import Array, Rng
from ldpaudit.datasets import declare
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import Declaration, FeatureTable, Release, ReleasedLabels, TrueLabels

# The label of each public table, and columns that are none of its features.
PUBLIC: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "adult": ("income", ()),
    "diabetes130": ("readmitted", ("encounter_id", "patient_nbr")),
    "fertility": ("morekids", ()),
    "military": ("gender", ()),
    "skin": ("label", ()),
}


def public(data: Path, name: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return the features and the labels of a public table; of MNIST the images of 0 and 9."""
    if name == "mnist-0-vs-9":
        images, digits = zero_or_nine(data, "train")
        return pd.DataFrame({"image": list(images)}), pd.Series(9 * digits)
    label, dropped = PUBLIC[name]
    frame = pd.read_parquet(data / f"{name}.parquet").reset_index(drop=True)
    return frame.drop(columns=[label, *dropped]), frame[label]


def zero_or_nine(data: Path, part: str) -> tuple[Array, Array]:
    """Return images of 0 and 9, float32 of shape (n, 784) in [0, 1], and labels: 1 for a 9."""
    files = np.load(data / "mnist.npz")
    images, digits = files[f"x_{part}"], files[f"y_{part}"]
    rows = (digits == 0) | (digits == 9)
    pixels = (images[rows].reshape(-1, 784) / 255).astype(np.float32)
    return pixels, (digits[rows] == 9).astype(np.int32)


def gaussian(
    n: int, columns: int, rng: Rng, shift: float = 0.25, prior: float = 0.457
) -> tuple[Array, Array, Array]:
    """Return points of two classes, ``shift`` apart in each column, labels, and P(y = 1 | x)."""
    labels = (rng.random(n) < prior).astype(np.int32)
    points = rng.standard_normal((n, columns), dtype=np.float32)
    points += (shift * (labels[:, None] - 0.5)).astype(np.float32)
    odds = shift * points.sum(axis=1, dtype=np.float64) + np.log(prior / (1 - prior))
    return points, labels, 1 / (1 + np.exp(-odds))


def table_of(numeric: Any = None, codes: Any = None) -> FeatureTable:
    """Return features in memory: numbers, codes, or both."""
    n = len(codes) if numeric is None else len(numeric)
    numeric, codes = (np.zeros((n, 0)) if part is None else part for part in (numeric, codes))
    sizes = tuple(int(column.max()) + 1 for column in codes.T)
    width = numeric.shape[1] + codes.shape[1]
    return FeatureTable(numeric.astype(np.float32), codes.astype(np.int32), sizes, width)


def release_of(
    features: FeatureTable,
    truth: Any,
    labels: Any,
    classes: tuple[Any, ...],
    claim: Declaration | None = None,
) -> Release:
    """Return a release in memory; true labels and released ones are codes."""
    known = None if truth is None else TrueLabels(np.asarray(truth).astype(np.int32))
    shown = ReleasedLabels(np.asarray(labels).astype(np.int32))
    return Release(features, shown, classes, classes, known, claim)


def released(
    features: FeatureTable, truth: Any, mechanism: Any, rng: Rng, known: bool = True
) -> Release:
    """Return a release by a mechanism of classes, with its true labels where they are known."""
    labels = mechanism.sample(np.asarray(truth).astype(np.int32), rng)
    return release_of(features, truth if known else None, labels, mechanism.classes)


def declaration(classes: Sequence[Any], epsilon: float) -> Declaration:
    """Return what a file declares that randomized response released."""
    return Declaration("randomized-response", {"classes": list(classes), "epsilon": epsilon})


def write(
    path: Path, features: pa.Table | None, labels: Any, claim: Declaration | None = None
) -> Path:
    """Write a Parquet file of labels, with features and a declaration where they are given."""
    column = pa.array(labels)
    bare = pa.table({}) if features is None else features.replace_schema_metadata(None)
    table = pa.table({"label": column}) if features is None else bare.append_column("label", column)
    pq.write_table(table if claim is None else declare(table, claim, "label"), path)
    return path


def randomized(
    folder: Path, name: str, frame: pd.DataFrame, labels: Any, made: float = 1.0, claim: float = 1.0
) -> tuple[Path, Path]:
    """Write a release by randomized response and its true labels; return both paths."""
    values, codes = np.unique(np.asarray(labels).astype(object), return_inverse=True)
    words = [value.item() if isinstance(value, np.generic) else value for value in values]
    noise = np.random.default_rng([*name.replace(".", "").encode()])
    drawn = RandomizedResponse.from_epsilon(tuple(words), made).sample(
        codes.astype(np.int32), noise
    )
    features = pa.Table.from_pandas(frame, preserve_index=False)
    release = write(
        folder / f"{name}.parquet", features, [words[c] for c in drawn], declaration(words, claim)
    )
    return release, write(folder / f"{name}.truth.parquet", None, [words[c] for c in codes])
