"""How far generated rows are from held-out ones: the yardstick of early stopping."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from ldpaudit.release import Float32Array, FloatArray, IntArray
from ldpaudit.synthesis.gan.networks import NOISE

_DIRECTIONS = 64
_MOST_ROWS = 1000


@dataclass(frozen=True)
class SlicedDistance:
    """The sliced Wasserstein-1 distance to held-out rows, averaged over the classes.

    Every look uses the same directions and the same noise, so two looks differ by the weights
    alone.

    Attributes
    ----------
    classes : tuple of float64 arrays of shape (n_y, directions)
        The held-out rows of each class along the directions, each column sorted.
    directions : float32 array of shape (width, directions)
    normal, gumbel : torch.Tensor
        The noise of each class's generated rows.

    References
    ----------
    Bonneel et al. (2015), Sliced and Radon Wasserstein barycenters of measures.
    """

    classes: tuple[FloatArray, ...]
    directions: Float32Array
    normal: torch.Tensor
    gumbel: torch.Tensor

    @classmethod
    def to(
        cls,
        rows: Float32Array,
        labels: IntArray,
        classes: int,
        codes: int,
        rng: np.random.Generator,
    ) -> "SlicedDistance":
        """Prepare the distance to rows of shape (n, width), every class among them."""
        directions = rng.standard_normal((rows.shape[1], _DIRECTIONS)).astype(np.float32)
        directions /= np.linalg.norm(directions, axis=0)
        parts = [rows[labels == y][:_MOST_ROWS] for y in range(classes)]
        sliced = tuple(np.sort(part @ directions, axis=0).astype(np.float64) for part in parts)
        most = max(len(part) for part in parts)
        normal = torch.from_numpy(rng.standard_normal((most, NOISE)).astype(np.float32))
        gumbel = torch.from_numpy(rng.gumbel(size=(most, codes)).astype(np.float32))
        return cls(sliced, directions, normal, gumbel)

    def floor(self, rows: Float32Array, labels: IntArray) -> float:
        """Return the distance of other true rows: about what a perfect generator would have."""
        distances = []
        for y, held_out in enumerate(self.classes):
            part = rows[labels == y][: len(held_out)]
            places = np.linspace(0, len(held_out) - 1, len(part)).round().astype(np.int64)
            distances.append(_apart(part @ self.directions, held_out[places]))
        return float(np.mean(distances))

    def of(self, generator: nn.Module, device: str) -> float:
        """Return the distance of a generator's rows."""
        training = generator.training
        generator.eval()
        distances = []
        with torch.inference_mode():
            for y, held_out in enumerate(self.classes):
                n = len(held_out)
                labels = torch.full((n,), y, dtype=torch.int64, device=device)
                noise = self.normal[:n].to(device), labels, self.gumbel[:n].to(device)
                made = generator(*noise).cpu().numpy()
                distances.append(_apart(made @ self.directions, held_out))
        generator.train(training)
        return float(np.mean(distances))


def _apart(sliced: Float32Array, held_out: FloatArray) -> float:
    """Return the mean Wasserstein-1 distance along the directions, for equally many rows."""
    return float(np.abs(np.sort(sliced, axis=0) - held_out).mean())
