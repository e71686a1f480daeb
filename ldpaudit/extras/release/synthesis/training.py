"""Training a generator against a critic: balanced batches, averaged weights, calibrated columns."""

import math
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm

from ldpaudit.doors import FloatArray, IndexArray, IntArray, Progress
from ldpaudit.errors import GeneratorDivergedError
from ldpaudit.extras.release.synthesis.columns import Encoded
from ldpaudit.release import Float32Array

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
        hidden = functional.leaky_relu(self.first(self.grid(rows)), _SLOPE)
        hidden = functional.leaky_relu(self.second(hidden), _SLOPE).flatten(1)
        score: Tensor = self.out(hidden)[:, 0] + (hidden * self.label(labels)).sum(1)
        return score

    def grid(self, rows: Tensor) -> Tensor:
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
    """Return normal noise of shape (rows, NOISE) and Gumbel noise of shape (rows, codes)."""
    # Both are drawn on the CPU, so that every device gives the same.
    normal = torch.randn(rows, NOISE, generator=noise)
    uniform = torch.rand(rows, codes, generator=noise).clamp_(1e-9, 1 - 1e-7)
    return normal, -torch.log(-torch.log(uniform))


_AVERAGING = 0.998
_LOOK_EVERY = 200
_DIRECTIONS = 64
# Trained rows must have less than this share of the untrained rows' distance to true ones.
_NO_BETTER = 0.7
_AT_ONCE = 4096
_MOST_ROWS_OF_A_LABEL = 1000
# Of a calibration: generated rows of each class, and corrections of the codes.
_COMPARED = 3000
_ROUNDS = 6


class Plan(NamedTuple):
    """How long and how fast a generator is trained."""

    steps: int
    seconds: float
    batch: int
    learning_rate: float


class Calibration(NamedTuple):
    """What gives each class's generated columns the shares and quantiles of its training rows."""

    # A generator gets the joint law about right long before the last percent of each column.

    shifts: Float32Array
    made: FloatArray
    true: FloatArray

    def move(self, rows: Encoded, labels: IntArray) -> Encoded:
        """Move the numbers of generated rows, in place."""
        for y, (made, true) in enumerate(zip(self.made, self.true, strict=True)):
            chosen = np.flatnonzero(labels == y)
            for j, column in enumerate(rows.numbers.T):
                column[chosen] = np.interp(column[chosen], made[:, j], true[:, j])
        return rows


def calibrate(
    generator: nn.Module,
    rows: Float32Array,
    labels: IntArray,
    shape: Shape,
    seed: int,
    device: str,
) -> Calibration:
    """Compare a trained generator's columns with those of its training rows, class by class."""
    # A shift changes a share by less than its log ratio says, so it is corrected some times.
    d, classes = shape.numbers, int(labels.max()) + 1
    true = [rows[labels == y] for y in range(classes)]
    wanted = np.maximum([some[:, d:].mean(axis=0) for some in true], 0.5 / _COMPARED)
    asked = np.repeat(np.arange(classes, dtype=np.int32), _COMPARED)
    shifts = np.zeros_like(wanted, dtype=np.float32)
    for _ in range(_ROUNDS):
        drawn = split(generate(generator, asked, shifts, seed, device), shape)
        made = drawn.flat().reshape(classes, _COMPARED, -1)
        shares = np.maximum(made[:, :, d:].mean(axis=1), 0.5 / _COMPARED)
        shifts += np.log(wanted / shares)
    known, held = (
        np.stack([np.quantile(some[:, :d], np.linspace(0, 1, 101), axis=0) for some in kind])
        for kind in (made, true)
    )
    return Calibration(shifts, known, held)


def split(made: Float32Array, shape: Shape) -> Encoded:
    """Return a dense generator's rows as numbers and codes."""
    ends = shape.numbers + np.cumsum([0, *shape.sizes])
    # The largest entry of each relaxed code is an exact draw (Gumbel-max).
    cells = [made[:, a:b].argmax(axis=1) for a, b in pairwise(ends)]
    stacked = np.column_stack([np.zeros((len(made), 0)), *cells]).astype(np.int32)
    return Encoded(made[:, : shape.numbers], stacked, shape.sizes)


def train(
    pair: tuple[nn.Module, nn.Module],
    rows: Float32Array,
    labels: IntArray,
    plan: Plan,
    rng: np.random.Generator,
    codes: int,
    device: str,
    progress: Progress,
) -> bool:
    """Train a generator and its critic with the hinge loss; return whether time ran out."""
    # The generator then has the exponential average of the weights that were trained (Yazıcı et al.
    # 2019), which is steadier than any of them.
    generator, critic = (network.to(device).train() for network in pair)
    classes, betas = int(labels.max()) + 1, (0.5, 0.99)
    fooling = torch.optim.Adam(generator.parameters(), plan.learning_rate, betas)
    telling = torch.optim.Adam(critic.parameters(), 2 * plan.learning_rate, betas)
    average = {name: value.detach().clone() for name, value in generator.state_dict().items()}
    noise = torch.Generator().manual_seed(int(rng.integers(2**31)))
    untrained = _distance(generator, rows, labels, codes, device)
    data, batches = torch.from_numpy(rows).to(device), _batches(labels, classes, plan.batch, rng)
    each = max(plan.batch // classes, 2)
    y = torch.arange(classes, device=device).repeat_interleave(each)
    progress.step(f"generator: {len(rows):,} rows, at most {plan.steps} steps")
    start, late = time.monotonic(), False
    for step in range(1, plan.steps + 1):
        normal, gumbel = draw_noise(len(y), codes, noise)
        fake = generator(normal.to(device), y, gumbel.to(device))
        real = data[torch.from_numpy(next(batches)).to(device)]
        judged = torch.relu(1 - critic(real, y)).mean()
        judged = judged + torch.relu(1 + critic(fake.detach(), y)).mean()
        _move(telling, judged)
        fooled = -critic(fake, y).mean()
        _move(fooling, fooled)
        keep = min(_AVERAGING, step / (step + 10))
        for name, value in generator.state_dict().items():
            if value.dtype.is_floating_point:
                average[name].mul_(keep).add_(value.detach(), alpha=1 - keep)
            else:
                average[name].copy_(value)
        losses = float(judged.detach()), float(fooled.detach())
        if not all(map(math.isfinite, losses)):
            raise GeneratorDivergedError(
                f"Training the generator failed after {step} steps: a loss is no finite number. "
                f"Nothing is kept; use a smaller learning rate."
            )
        if step % _LOOK_EVERY == 0 or step == plan.steps:
            progress.advance(step, plan.steps)
            late = time.monotonic() - start > plan.seconds
            if late:
                break
    progress.step(
        f"generator: {step} steps, critic's loss {losses[0]:.3g}, generator's loss {losses[1]:.3g}"
    )
    generator.load_state_dict(average)
    trained = _distance(generator, rows, labels, codes, device)
    if not trained < _NO_BETTER * untrained:
        raise GeneratorDivergedError(
            f"Training the generator failed: after {step} steps its rows are hardly nearer to the "
            f"true ones than those of an untrained generator. Nothing is kept."
        )
    return late


def generate(
    generator: nn.Module, labels: IntArray, shifts: Float32Array, seed: int, device: str
) -> Float32Array:
    """Return one generated row for each label, float32 of shape (m, width); see Calibration."""
    noise, parts = torch.Generator().manual_seed(seed), []
    generator.eval()
    with torch.inference_mode():
        for start in range(0, max(len(labels), 1), _AT_ONCE):
            some = torch.from_numpy(labels[start : start + _AT_ONCE].astype(np.int64))
            normal, gumbel = draw_noise(len(some), shifts.shape[1], noise)
            # A shift of the noise is a shift of the codes' log-odds.
            inputs = (normal, some, gumbel + torch.from_numpy(shifts)[some])
            parts.append(generator(*(part.to(device) for part in inputs)).cpu().numpy())
    return np.concatenate(parts)


def _move(optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    optimiser.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()


def _batches(
    labels: IntArray, classes: int, batch: int, rng: np.random.Generator
) -> Iterator[IndexArray]:
    """Yield endless batches, equally many rows of each class; small classes come round sooner."""
    each = max(batch // classes, 2)
    pools = [np.flatnonzero(labels == y) for y in range(classes)]
    queues = [np.zeros(0, dtype=np.int64) for _ in pools]
    while True:
        for y, pool in enumerate(pools):
            while len(queues[y]) < each:
                queues[y] = np.concatenate([queues[y], rng.permutation(pool)])
        yield np.concatenate([queue[:each] for queue in queues])
        queues = [queue[each:] for queue in queues]


def _distance(
    generator: nn.Module, rows: Float32Array, labels: IntArray, codes: int, device: str
) -> float:
    """Return the sliced Wasserstein-1 distance to true rows, averaged over the classes."""
    # Every call uses the same directions, rows and noise (Bonneel et al. 2015).
    rng, found = np.random.default_rng(0), []
    directions = rng.standard_normal((rows.shape[1], _DIRECTIONS)).astype(np.float32)
    directions /= np.linalg.norm(directions, axis=0)
    classes = int(labels.max()) + 1
    shifts = np.zeros((classes, codes), dtype=np.float32)
    for y in range(classes):
        true = rows[labels == y][:_MOST_ROWS_OF_A_LABEL]
        made = generate(generator, np.full(len(true), y, dtype=np.int32), shifts, 0, device)
        far = np.sort(made @ directions, axis=0) - np.sort(true @ directions, axis=0)
        found.append(float(np.abs(far).mean()))
    generator.train()
    return float(np.mean(found))
