"""A trained generator's marginals, made those of the training rows of each class."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ldpaudit.release import Float32Array, FloatArray, IntArray
from ldpaudit.synthesis.codecs.black_pixels import BlackPixels
from ldpaudit.synthesis.codecs.encoded import split_rows
from ldpaudit.synthesis.gan.networks import NetworkPair, draw_noise

_AT_ONCE = 4096
_ROWS = 3000
_KNOTS = 101
_ROUNDS = 8
_LARGEST_SHIFT = 12.0


@dataclass(frozen=True)
class Calibration:
    """Monotone maps of numbers, shifts of codes' log-odds and blacks of images, for each class.

    A generator gets the joint law about right long before the last percent of each column. The
    maps move quantiles onto quantiles; the shifts make the share of each code right.

    Attributes
    ----------
    made, true : float64 arrays of shape (k, knots, d)
        Quantiles of generated and of training rows.
    shifts : float32 array of shape (k, Σ cardinalities)
    blacks : BlackPixels
    """

    made: FloatArray
    true: FloatArray
    shifts: Float32Array
    blacks: BlackPixels

    @classmethod
    def none(cls, classes: int, codes: int) -> "Calibration":
        """Return one that changes nothing."""
        empty = np.zeros((classes, 0, 0))
        shifts = np.zeros((classes, codes), dtype=np.float32)
        return cls(empty, empty, shifts, BlackPixels.none(classes))

    @classmethod
    def of_images(
        cls,
        pair: NetworkPair,
        images: Float32Array,
        labels: IntArray,
        classes: int,
        seed: int,
        device: str,
    ) -> "Calibration":
        """Compare generated images with training images, encoded, float32 of shape (n, s²)."""
        calibration = cls.none(classes, 0)
        made = [
            generate(pair, calibration, np.full(_ROWS, y, dtype=np.int32), seed, device)
            for y in range(classes)
        ]
        true = [images[labels == y] for y in range(classes)]
        return replace(calibration, blacks=BlackPixels.fit(true, made))

    @classmethod
    def fit(
        cls,
        pair: NetworkPair,
        rows: Float32Array,
        labels: IntArray,
        classes: int,
        sizes: tuple[int, ...],
        seed: int,
        device: str,
    ) -> "Calibration":
        """Compare generated rows with training rows, float32 of shape (n, d + Σ sizes)."""
        asked = np.repeat(np.arange(classes, dtype=np.int32), _ROWS)
        d = rows.shape[1] - sum(sizes)
        calibration = cls.none(classes, sum(sizes))
        true = np.stack([rows[labels == y, d:].mean(axis=0) for y in range(classes)])
        made = generate(pair, calibration, asked, seed, device)
        for _ in range(_ROUNDS if sizes else 0):
            drawn = split_rows(made, d, sizes).flat()[:, d:]
            shares = drawn.reshape(classes, _ROWS, -1).mean(axis=1)
            least = 0.5 / _ROWS
            step = np.log(np.maximum(true, least) / np.maximum(shares, least))
            shifts = np.clip(calibration.shifts + step, -_LARGEST_SHIFT, _LARGEST_SHIFT)
            calibration = replace(calibration, shifts=shifts.astype(np.float32))
            made = generate(pair, calibration, asked, seed, device)
        levels = np.linspace(0, 1, _KNOTS)
        numbers = made[:, :d].reshape(classes, _ROWS, d).astype(np.float64)
        quantiles = [np.quantile(rows[labels == y, :d], levels, axis=0) for y in range(classes)]
        known = np.quantile(numbers, levels, axis=1).swapaxes(0, 1)
        return replace(calibration, made=known, true=np.stack(quantiles))

    def mapped(self, flat: Float32Array, labels: IntArray) -> Float32Array:
        """Return generated rows with their numbers mapped and blacks cut, in place."""
        for y, (made, true) in enumerate(zip(self.made, self.true, strict=True)):
            chosen = np.flatnonzero(labels == y)
            for j in range(made.shape[1]):
                flat[chosen, j] = np.interp(flat[chosen, j], made[:, j], true[:, j])
        return self.blacks.cut(flat, labels)

    def state(self) -> dict[str, torch.Tensor]:
        """Return it as tensors."""
        parts = {"made": self.made, "true": self.true, "shifts": self.shifts}
        parts["blacks"] = self.blacks.upto
        return {key: torch.from_numpy(np.ascontiguousarray(v)) for key, v in parts.items()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Calibration":
        """Rebuild it."""
        made, true, shifts = (state[key].numpy() for key in ("made", "true", "shifts"))
        return cls(made, true, shifts, BlackPixels(state["blacks"].numpy()))


def generate(
    pair: NetworkPair, calibration: Calibration, labels: IntArray, seed: int, device: str
) -> Float32Array:
    """Return one generated row for each label, float32 of shape (m, width)."""
    noise = torch.Generator().manual_seed(seed)
    shifts = torch.from_numpy(calibration.shifts)
    parts = []
    with torch.inference_mode():
        for start in range(0, max(len(labels), 1), _AT_ONCE):
            some = torch.from_numpy(labels[start : start + _AT_ONCE].astype(np.int64))
            normal, gumbel = draw_noise(len(some), pair.codes, noise)
            # A shift of the noise is a shift of the codes' log-odds.
            inputs = normal, some, gumbel + shifts[some]
            parts.append(pair.generator(*(part.to(device) for part in inputs)).cpu().numpy())
    return calibration.mapped(np.concatenate(parts), labels)
