"""Exactly black pixels in generated images, as often as training images have them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.release import BoolArray, Float32Array, FloatArray, IntArray

BLACK: Final = -1.0
"""The smallest pixel of the training images, encoded."""


@dataclass(frozen=True)
class BlackPixels:
    """For each class and pixel, the brightness up to which a generated pixel is made black.

    A network's background is nearly black, and exactly black nowhere: a linear discriminator finds
    such images by their faint pixels. So each pixel is cut off where the class's generated images
    are black as often as its training images.

    Attributes
    ----------
    upto : float32 array of shape (k, s²)
        −inf where nothing is cut; of shape (k, 0) where rows are no images.
    """

    upto: Float32Array

    @classmethod
    def none(cls, classes: int) -> "BlackPixels":
        """Return one that changes nothing."""
        return cls(np.zeros((classes, 0), dtype=np.float32))

    @classmethod
    def fit(cls, true: Sequence[Float32Array], made: Sequence[Float32Array]) -> "BlackPixels":
        """Compare training with generated images of each class, encoded, of shapes (n, s²).

        Only pixels of exactly the smallest value count as black: images without an exact black
        are left as they are.
        """
        rows = [_upto((t == BLACK).mean(axis=0), m) for t, m in zip(true, made, strict=True)]
        return cls(np.stack(rows))

    def cut(self, images: Float32Array, labels: IntArray) -> Float32Array:
        """Return generated images of shape (m, s²) with faint pixels made black, in place."""
        for y, upto in enumerate(self.upto if self.upto.size else ()):
            chosen = np.flatnonzero(labels == y)
            some = images[chosen]
            faint: BoolArray = some <= upto
            images[chosen] = np.where(faint, np.float32(BLACK), some)
        return images


def _upto(shares: FloatArray, made: Float32Array) -> Float32Array:
    """Return the brightness below which a share of each pixel's generated values lies."""
    ordered = np.sort(made, axis=0)
    last = np.ceil(shares * len(made)).astype(np.int64) - 1
    upto = ordered[np.maximum(last, 0), np.arange(made.shape[1])].astype(np.float32)
    upto[shares == 0] = -np.inf
    # A pixel that is never lit in training is never lit at all.
    upto[shares == 1] = np.inf
    return upto
