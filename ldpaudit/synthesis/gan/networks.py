"""The generator and critic networks: dense for tables, convolutional for images."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm

from ldpaudit.synthesis.codecs.image import ImageCodec
from ldpaudit.synthesis.codecs.table import TableCodec

NOISE = 64
"""The number of random coordinates behind each generated row."""
_DENSE_UNITS = 256
_IMAGE_CHANNELS = 32
_TEMPERATURE = 0.5
_SLOPE = 0.2
_EMBEDDED = 24
_GAIN = 12.0
"""How steep the dense critic may be: with slope 1 it hardly sees one-hot codes."""


class DenseGenerator(nn.Module):
    """Turns noise and a label into numbers and soft one-hot codes.

    Parameters
    ----------
    numbers : int
        d, the number of real coordinates.
    cardinalities : sequence of int
        The size of each categorical variable.
    classes : int
        k.
    width : int
        Units of each hidden layer.
    """

    def __init__(
        self, numbers: int, cardinalities: Sequence[int], classes: int, width: int
    ) -> None:
        super().__init__()
        self._numbers, self._cardinalities = numbers, list(cardinalities)
        self.label = nn.Embedding(classes, _EMBEDDED)
        self.first = nn.Linear(NOISE + _EMBEDDED, width)
        self.second = nn.Linear(width + _EMBEDDED, width)
        self.first_norm, self.second_norm = nn.BatchNorm1d(width), nn.BatchNorm1d(width)
        self.out = nn.Linear(2 * width, numbers + sum(self._cardinalities))

    def forward(self, noise: Tensor, labels: Tensor, gumbel: Tensor) -> Tensor:
        """Return rows of shape (m, d + Σ cardinalities).

        ``gumbel`` is standard Gumbel noise of shape (m, Σ cardinalities): each code is a relaxed
        draw, so that the critic sees nearly one-hot codes of both kinds of rows.
        """
        label = self.label(labels)
        first = torch.relu(self.first_norm(self.first(torch.cat([noise, label], 1))))
        second = torch.relu(self.second_norm(self.second(torch.cat([first, label], 1))))
        raw = self.out(torch.cat([first, second], 1))
        numbers, *logits = torch.split(raw, [self._numbers, *self._cardinalities], 1)
        pairs = zip(logits, torch.split(gumbel, self._cardinalities, 1), strict=True)
        codes = [functional.softmax((part + noise) / _TEMPERATURE, dim=1) for part, noise in pairs]
        return torch.cat([numbers, *codes], 1)


class DenseCritic(nn.Module):
    """Scores rows given their label: real ones high, generated ones low."""

    def __init__(self, width_in: int, classes: int, width: int) -> None:
        super().__init__()
        self.first = spectral_norm(nn.Linear(width_in, width))
        self.second = spectral_norm(nn.Linear(width, width))
        self.out = spectral_norm(nn.Linear(width, 1))
        self.label = spectral_norm(nn.Embedding(classes, width))

    def forward(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Return scores of shape (m,)."""
        hidden = functional.leaky_relu(self.first(_GAIN * rows), _SLOPE)
        hidden = functional.leaky_relu(self.second(hidden), _SLOPE)
        return _projection(self.out(hidden), hidden, self.label(labels))


class ImageGenerator(nn.Module):
    """Turns noise and a label into an s × s image with pixels in [−1, 1]."""

    def __init__(self, side: int, classes: int, width: int) -> None:
        super().__init__()
        self._side, self._start, self._width = side, -(-side // 4), width
        self.label = nn.Embedding(classes, _EMBEDDED)
        self.first = nn.Linear(NOISE + _EMBEDDED, 2 * width * self._start**2)
        self.first_norm = nn.BatchNorm2d(2 * width)
        self.second = nn.ConvTranspose2d(2 * width, width, 4, 2, 1)
        self.second_norm = nn.BatchNorm2d(width)
        self.out = nn.ConvTranspose2d(width, 1, 4, 2, 1)

    def forward(self, noise: Tensor, labels: Tensor, _gumbel: Tensor) -> Tensor:
        """Return images of shape (m, s²)."""
        flat = self.first(torch.cat([noise, self.label(labels)], 1))
        grid = flat.reshape(-1, 2 * self._width, self._start, self._start)
        hidden = self.second(torch.relu(self.first_norm(grid)))
        image = torch.tanh(self.out(torch.relu(self.second_norm(hidden))))
        return image[:, 0, : self._side, : self._side].flatten(1)


class ImageCritic(nn.Module):
    """Scores images of one label: real ones high, generated ones low."""

    def __init__(self, side: int, classes: int, width: int) -> None:
        super().__init__()
        self._side = side
        last = 2 * width * (side // 2 // 2) ** 2
        self.first = spectral_norm(nn.Conv2d(1, width, 4, 2, 1))
        self.second = spectral_norm(nn.Conv2d(width, 2 * width, 4, 2, 1))
        self.out = spectral_norm(nn.Linear(last, 1))
        self.label = spectral_norm(nn.Embedding(classes, last))

    def forward(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Return scores of shape (m,)."""
        grid = rows.reshape(-1, 1, self._side, self._side)
        hidden = functional.leaky_relu(self.first(grid), _SLOPE)
        hidden = functional.leaky_relu(self.second(hidden), _SLOPE).flatten(1)
        return _projection(self.out(hidden), hidden, self.label(labels))


@dataclass(frozen=True)
class NetworkPair:
    """A generator and its critic.

    Attributes
    ----------
    generator, critic : torch.nn.Module
    codes : int
        Σ cardinalities: how much Gumbel noise the generator takes.
    """

    generator: nn.Module
    critic: nn.Module
    codes: int


def draw_noise(rows: int, codes: int, noise: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return normal noise of shape (rows, NOISE) and Gumbel noise of shape (rows, codes).

    Both are drawn on the CPU, so that every device gives the same.
    """
    normal = torch.randn(rows, NOISE, generator=noise)
    uniform = torch.rand(rows, codes, generator=noise).clamp_(1e-9, 1 - 1e-7)
    return normal, -torch.log(-torch.log(uniform))


def _projection(score: Tensor, hidden: Tensor, label: Tensor) -> Tensor:
    """Add the projection of the features on the label's embedding (Miyato & Koyama 2018)."""
    return score[:, 0] + (hidden * label).sum(1)


def build_networks(codec: TableCodec | ImageCodec, classes: int, seed: int) -> NetworkPair:
    """Return untrained networks for a codec's rows, with weights drawn from the seed."""
    # Layers draw from torch's global generator; its state is put back afterwards.
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(torch.Generator().manual_seed(seed).get_state())
        if isinstance(codec, ImageCodec):
            made: nn.Module = ImageGenerator(codec.side, classes, _IMAGE_CHANNELS)
            return NetworkPair(made, ImageCritic(codec.side, classes, _IMAGE_CHANNELS), 0)
        codes = sum(codec.cardinalities)
        made = DenseGenerator(codec.numbers, codec.cardinalities, classes, _DENSE_UNITS)
        critic = DenseCritic(codec.numbers + codes, classes, _DENSE_UNITS)
        return NetworkPair(made, critic, codes)
