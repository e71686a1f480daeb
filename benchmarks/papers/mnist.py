"""MNIST 0 against 9, and a generator of its images that is trained once and kept in a file."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ldpaudit.release import FeatureTable
from ldpaudit.synthesis import generator, load_generator, save_generator

SEED = 20230723


@dataclass(frozen=True)
class Images:
    """Training and test images, float32 of shape (n, 784) in [0, 1]; labels 0 for 0, 1 for 9."""

    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray

    @classmethod
    def read(cls, folder: Path) -> "Images":
        """Read ``mnist.npz``."""
        data = np.load(folder / "mnist.npz")
        return cls(
            *_zero_or_nine(data["x_train"], data["y_train"]),
            *_zero_or_nine(data["x_test"], data["y_test"]),
        )


def _zero_or_nine(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    chosen = (y == 0) | (y == 9)
    pixels = (x[chosen].reshape(-1, 784) / 255).astype(np.float32)
    return pixels, (y[chosen] == 9).astype(np.int32)


def fitted_generator(images: Images, file: Path | None, device: str) -> Any:
    """Return the generator in the file; where there is none, train one on all training images."""
    if file is not None and file.exists():
        return load_generator(file)
    start, worked = time.perf_counter(), time.process_time()
    # Steps and not the clock end the training, however busy the machine is.
    made = generator("gan", trained_on="private", seconds=3600.0)
    rng = np.random.default_rng(SEED)
    made.fit(_as_lists(images.x), images.y, 2, rng=rng, device=device)
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    print(f"Training the generator took {seconds:.0f} s, {worked:.0f} s of processor time.\n")
    if file is not None:
        save_generator(made, file)
    return made


def generated(made: Any, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return one synthetic image for each label, float32 of shape (m, 784)."""
    column = made.sample(labels.astype(np.int32), rng)["image"].combine_chunks()
    return np.asarray(column.flatten(), dtype=np.float32).reshape(len(labels), -1)


def as_features(x: np.ndarray) -> FeatureTable:
    """Return images as a table of one list column."""
    return FeatureTable(x, np.empty((len(x), 0), dtype=np.int32), (), 1)


def _as_lists(x: np.ndarray) -> pa.Table:
    column = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), x.shape[1])
    return pa.table({"image": column})
