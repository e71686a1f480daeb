"""The generator and critic networks: dense for tables, convolutional for images."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm

# The number of random coordinates behind each generated row.
NOISE = 64
_UNITS = 256
_CHANNELS = 32
_TEMPERATURE = 0.5
_SLOPE = 0.2
_EMBEDDED = 24
# How steep the dense critic may be: with slope 1 it hardly sees one-hot codes.
_GAIN = 12.0


class DenseGenerator(nn.Module):
    """Turns noise and a label into d numbers and soft one-hot codes of the given sizes."""

    def __init__(self, numbers: int, sizes: Sequence[int], classes: int) -> None:
        super().__init__()
        self._parts, self._sizes = [numbers, *sizes], list(sizes)
        self.label = nn.Embedding(classes, _EMBEDDED)
        self.first = nn.Linear(NOISE + _EMBEDDED, _UNITS)
        self.second = nn.Linear(_UNITS + _EMBEDDED, _UNITS)
        self.first_norm, self.second_norm = nn.BatchNorm1d(_UNITS), nn.BatchNorm1d(_UNITS)
        self.out = nn.Linear(2 * _UNITS, sum(self._parts))

    def forward(self, noise: Tensor, labels: Tensor, gumbel: Tensor) -> Tensor:
        """Return rows of shape (m, d + Σ sizes).

        ``gumbel`` is standard Gumbel noise of shape (m, Σ sizes): each code is a relaxed draw, so
        that the critic sees nearly one-hot codes of both kinds of rows.
        """
        label = self.label(labels)
        first = torch.relu(self.first_norm(self.first(torch.cat([noise, label], 1))))
        second = torch.relu(self.second_norm(self.second(torch.cat([first, label], 1))))
        raw = self.out(torch.cat([first, second], 1))
        numbers, *logits = torch.split(raw, self._parts, 1)
        pairs = zip(logits, torch.split(gumbel, self._sizes, 1), strict=True)
        codes = [functional.softmax((part + noise) / _TEMPERATURE, dim=1) for part, noise in pairs]
        return torch.cat([numbers, *codes], 1)


class DenseCritic(nn.Module):
    """Scores rows given their label: real ones high, generated ones low."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.first = spectral_norm(nn.Linear(width, _UNITS))
        self.second = spectral_norm(nn.Linear(_UNITS, _UNITS))
        self.out = spectral_norm(nn.Linear(_UNITS, 1))
        self.label = spectral_norm(nn.Embedding(classes, _UNITS))

    def forward(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Return scores of shape (m,), with the projection on the label (Miyato & Koyama 2018)."""
        hidden = functional.leaky_relu(self.first(self.grid(rows)), _SLOPE)
        hidden = functional.leaky_relu(self.second(hidden), _SLOPE).flatten(1)
        score: Tensor = self.out(hidden)[:, 0] + (hidden * self.label(labels)).sum(1)
        return score

    def grid(self, rows: Tensor) -> Tensor:
        """Return rows as the first layer takes them."""
        return _GAIN * rows


class ImageGenerator(nn.Module):
    """Turns noise and a label into an s × s image with pixels in [−1, 1]."""

    def __init__(self, side: int, classes: int) -> None:
        super().__init__()
        self._side, self._start = side, -(-side // 4)
        self.label = nn.Embedding(classes, _EMBEDDED)
        self.first = nn.Linear(NOISE + _EMBEDDED, 2 * _CHANNELS * self._start**2)
        self.first_norm = nn.BatchNorm2d(2 * _CHANNELS)
        self.second = nn.ConvTranspose2d(2 * _CHANNELS, _CHANNELS, 4, 2, 1)
        self.second_norm = nn.BatchNorm2d(_CHANNELS)
        self.out = nn.ConvTranspose2d(_CHANNELS, 1, 4, 2, 1)

    def forward(self, noise: Tensor, labels: Tensor, _gumbel: Tensor) -> Tensor:
        """Return images of shape (m, s²)."""
        flat = self.first(torch.cat([noise, self.label(labels)], 1))
        grid = flat.reshape(-1, 2 * _CHANNELS, self._start, self._start)
        hidden = self.second(torch.relu(self.first_norm(grid)))
        image = torch.tanh(self.out(torch.relu(self.second_norm(hidden))))
        return image[:, 0, : self._side, : self._side].flatten(1)


class ImageCritic(DenseCritic):
    """Scores images of one label."""

    def __init__(self, side: int, classes: int) -> None:
        nn.Module.__init__(self)
        self._side, last = side, 2 * _CHANNELS * (side // 2 // 2) ** 2
        self.first = spectral_norm(nn.Conv2d(1, _CHANNELS, 4, 2, 1))
        self.second = spectral_norm(nn.Conv2d(_CHANNELS, 2 * _CHANNELS, 4, 2, 1))
        self.out = spectral_norm(nn.Linear(last, 1))
        self.label = spectral_norm(nn.Embedding(classes, last))

    def grid(self, rows: Tensor) -> Tensor:
        """Return rows as images of one channel."""
        return rows.reshape(-1, 1, self._side, self._side)


class Shape(NamedTuple):
    """What rows look like: the side of an image, or d numbers and codes of some sizes."""

    side: int | None
    numbers: int
    sizes: Sequence[int]


def networks(shape: Shape, classes: int, seed: int) -> tuple[nn.Module, nn.Module]:
    """Return an untrained generator and its critic, their weights drawn from the seed."""
    # Layers draw from torch's global generator; its state is put back afterwards.
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(torch.Generator().manual_seed(seed).get_state())
        if shape.side is not None:
            return ImageGenerator(shape.side, classes), ImageCritic(shape.side, classes)
        generator = DenseGenerator(shape.numbers, shape.sizes, classes)
        return generator, DenseCritic(shape.numbers + sum(shape.sizes), classes)


def draw_noise(rows: int, codes: int, noise: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return normal noise of shape (rows, NOISE) and Gumbel noise of shape (rows, codes).

    Both are drawn on the CPU, so that every device gives the same.
    """
    normal = torch.randn(rows, NOISE, generator=noise)
    uniform = torch.rand(rows, codes, generator=noise).clamp_(1e-9, 1 - 1e-7)
    return normal, -torch.log(-torch.log(uniform))
