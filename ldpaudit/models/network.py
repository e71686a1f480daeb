"""Neural networks trained by corrected losses: dense, or convolutional for square images."""

# Training is by AdamW, the best pass on held-out rows kept. torch takes seconds to import and is
# imported on first use.

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ldpaudit.device import need_torch
from ldpaudit.errors import InputError
from ldpaudit.models.encoding import Scaling
from ldpaudit.release import FloatArray, IndexArray

_AT_ONCE = 8192


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Let torch use so many threads, at least one, and as many as before afterwards."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(max(threads, 1))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train(
    module: Any,
    mean_loss: Callable[[Any], Any],
    passes: Iterable[Iterable[Any]],
    held: Any | None,
    *,
    rate: float,
    decay: float,
    warm: int = 1,
    patience: float = math.inf,
) -> None:
    """Train a network, and leave it as it was after the pass of least loss on held-out rows.

    ``mean_loss`` gives the mean loss of an index of rows, ``passes`` the batches of each pass;
    without ``held`` the last pass stays. Steps of AdamW grow over ``warm`` of them; ``patience``
    passes in a row that are no improvement end it.
    """
    import torch

    optimizer = torch.optim.AdamW(module.parameters(), lr=rate, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / warm))
    least, best, worse = math.inf, None, 0
    for batches in passes:
        for rows in batches:
            optimizer.zero_grad()
            mean_loss(rows).backward()
            optimizer.step()
            schedule.step()
        if held is None:
            continue
        with torch.no_grad():
            value = float(mean_loss(held))
        worse = 0 if value < least else worse + 1
        if value < least:
            least, best = value, {k: v.clone() for k, v in module.state_dict().items()}
        if worse >= patience:
            break
    if best is not None:
        module.load_state_dict(best)


def in_blocks(outputs: Callable[[Any], Any], rows: Any) -> FloatArray:
    """Return a network's outputs for rows of shape (n, d), float64, computed block by block."""
    import torch

    with torch.no_grad():
        parts = [
            outputs(rows[start : start + _AT_ONCE]).double().cpu().numpy()
            for start in range(0, len(rows), _AT_ONCE)
        ]
    return np.asarray(np.concatenate(parts), dtype=np.float64)


# What a network is trained on: T[y, z] of each label, soft labels, or one number.
NetworkLoss = Literal["forward", "targets", "squared", "poisson"]

_FLOOR = 1e-3
_MOST_MIXED = 0.6
_MASS_PER_MIX = 50.0
_HELD_OUT = 0.1
# Steps over which the step size grows to its full length, or a tenth of all, if those are fewer.
_WARM_STEPS = 30
_FEWEST_HELD_OUT = 20
_SMALLEST_IMAGE = 4
_STEEPEST = 30.0
_SHARED_FROM = 2**15


@dataclass(frozen=True)
class NetworkOptions:
    """The network's shape and its training."""

    architecture: Literal["dense", "convolutional"] = "dense"
    """Convolutional takes d features as a √d × √d image."""
    hidden: tuple[int, ...] = (64,)
    """Widths of the hidden dense layers."""
    epochs: int = 30
    """Passes over the rows; the best one on held-out rows is kept."""
    batch_size: int = 128
    """Rows in a batch."""
    learning_rate: float = 3e-3
    weight_decay: float = 1e-3
    """``learning_rate`` and ``weight_decay``: of AdamW."""
    device: str = "cpu"
    """A torch device, ``"cpu"`` or ``"cuda"``."""
    restarts: int = 3
    """Trainings on soft labels of both signs, of which that with the least held-out loss is kept: a
    single one may learn nothing."""


@dataclass(frozen=True)
class TrainedNetwork:
    """A trained network."""

    module: Any
    scaling: Scaling
    loss: NetworkLoss
    device: str
    mix: float = _FLOOR

    def predict(self, matrix: FloatArray) -> FloatArray:
        return in_blocks(self._outputs, matrix)

    def _outputs(self, matrix: FloatArray) -> Any:
        outputs = self.module(_tensor(self.scaling.transform(matrix), self.device)).double()
        if self.loss == "poisson":
            return _positive(outputs)
        return outputs if self.loss == "squared" else _log_probability(outputs, self.mix).exp()


def fit_network(
    matrix: FloatArray,
    answers: FloatArray,
    weights: FloatArray,
    loss: NetworkLoss,
    options: NetworkOptions,
    rng: np.random.Generator,
) -> TrainedNetwork:
    """Train a network.

    Parameters
    ----------
    matrix : float64 array of shape (n, d)
        Features; they are standardised.
    answers : float64 array of shape (n, c)
        For the forward loss T[y, z] of each label y, for soft labels the soft labels (of any sign),
        for the squared and the Poisson loss the values, c = 1; for the latter with a mean near 1.
    weights : float64 array of shape (n,)
        Rows' weights, not negative.
    loss : {"forward", "targets", "squared", "poisson"}
        Which loss.
    options : NetworkOptions
        Shape and training.
    rng : numpy.random.Generator
        Draws the first weights, the batches and the held-out rows.

    Raises
    ------
    InputError
        If a convolutional network is asked for and d is no square of at least 4.

    Notes
    -----
    Each log-probability is that of the softmax mixed with a share of the uniform distribution, see
    :func:`mixed_share`. So the loss is bounded, which a loss with negative soft labels needs: its
    estimate is unbiased for every bounded network, but the minimum of an unbounded one would be
    −∞. With a share too small, chance pays: under double randomized response at λ = 0.8 the soft
    labels of synthetic rows, 15 and −10, cancel on average only, and 7 nats for being sure in the
    direction of their sum outweigh the log 2 that the true rows can offer. The likeliest label is
    the same for every share; probabilities near 0 and 1 are moved to its bounds. A tenth of the
    rows is held out, and the epoch with the least corrected loss on them is kept.

    That bound makes the loss flat where a network is sure of itself, so one that starts out sure
    stays as it is. The last layer therefore starts at 0, every label being as likely as any other,
    and the first steps are short.
    """
    need_torch("A network")
    import torch

    generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
    shape = matrix.shape[1], answers.shape[1]
    scaling = Scaling.fit(matrix, weights)
    if options.architecture == "convolutional":
        scaling = _pooled(scaling)
    device = options.device
    share = weights / weights.mean()
    mix = mixed_share(answers, weights) if loss == "targets" else _FLOOR
    data = [_tensor(part, device) for part in (scaling.transform(matrix), answers, share)]
    work = options.batch_size * max(options.hidden, default=1)
    # Sharing little work between threads takes longer.
    small = options.architecture == "dense" and work <= _SHARED_FROM
    with torch_threads(1) if small else nullcontext():
        split = _split(len(data[0]), rng)
        several = loss == "targets" and mix > _FLOOR and len(split[0]) > 0
        tried = []
        for _ in range(max(options.restarts, 1) if several else 1):
            module = _layers(*shape, options, generator).to(device)
            _train(module, data, loss, mix, options, split, rng)
            tried.append(module)
        if len(tried) > 1:
            held = [part[torch.from_numpy(split[0])] for part in data]
            with torch.no_grad():
                losses = [float(_mean_loss(one, held, loss, mix)) for one in tried]
            module = tried[int(np.argmin(losses))]
    return TrainedNetwork(module, scaling, loss, device, mix)


def mixed_share(targets: FloatArray, weights: FloatArray) -> float:
    """Return the share of the uniform distribution in the probabilities of soft labels' loss."""
    # A thousandth where soft labels are probabilities, more where they are large and of both signs:
    # 2 % for each unit of the mass Σ|W|/ΣW beyond 1, at most 60 %.
    mass = float(weights @ np.abs(targets).sum(axis=1) / abs(weights @ targets.sum(axis=1)))
    return float(np.clip((mass - 1) / _MASS_PER_MIX, _FLOOR, _MOST_MIXED))


def _pooled(scaling: Scaling) -> Scaling:
    """Return one mean and scale for all columns: an image's pixels keep their contrast."""
    means = scaling.center
    spread = np.sqrt(float(np.mean(scaling.scale**2 + (means - means.mean()) ** 2)))
    same = np.full_like(means, means.mean())
    return Scaling(same, np.full_like(means, spread), same)


def _train(
    module: Any,
    data: list[Any],
    loss: NetworkLoss,
    mix: float,
    options: NetworkOptions,
    split: tuple[IndexArray, IndexArray],
    rng: np.random.Generator,
) -> None:
    import torch

    held, training = split
    size = options.batch_size

    def batches() -> Iterator[Any]:
        order = torch.from_numpy(rng.permutation(training))
        return (order[start : start + size] for start in range(0, len(order), size))

    steps = options.epochs * math.ceil(len(training) / size)
    train(
        module,
        lambda rows: _mean_loss(module, [part[rows] for part in data], loss, mix),
        (batches() for _ in range(options.epochs)),
        torch.from_numpy(held) if len(held) else None,
        rate=options.learning_rate,
        decay=options.weight_decay,
        warm=max(1, min(_WARM_STEPS, steps // 10)),
    )


def _split(n: int, rng: np.random.Generator) -> tuple[IndexArray, IndexArray]:
    size = int(n * _HELD_OUT)
    order = rng.permutation(n)
    if size < _FEWEST_HELD_OUT:
        return order[:0], order
    return order[:size], order[size:]


def _mean_loss(module: Any, batch: list[Any], loss: NetworkLoss, mix: float) -> Any:
    matrix, answers, weights = batch
    outputs = module(matrix)
    if loss == "squared":
        losses = ((outputs - answers) ** 2).sum(dim=1)
    elif loss == "poisson":
        means = _positive(outputs)
        losses = (means - answers * means.log()).sum(dim=1)
    elif loss == "forward":
        evidence = (_log_probability(outputs, mix).exp() * answers).sum(dim=1)
        losses = -evidence.clamp_min(1e-30).log()
    else:
        losses = -(_log_probability(outputs, mix) * answers).sum(dim=1)
    return (losses * weights).mean()


def _positive(outputs: Any) -> Any:
    # Bounded below, so that the loss of a noisy label below 0 is so, too.
    return _FLOOR + (1 - _FLOOR) * outputs.clamp(max=_STEEPEST).exp()


def _log_probability(outputs: Any, mix: float) -> Any:
    probability = outputs.softmax(dim=1)
    return ((1 - mix) * probability + mix / outputs.shape[1]).log()


def _layers(d: int, k: int, options: NetworkOptions, generator: Any) -> Any:
    from torch import nn

    empty: Any = nn.utils.skip_init
    layers: list[Any] = []
    width = d
    if options.architecture == "convolutional":
        side = math.isqrt(d)
        if side * side != d or side < _SMALLEST_IMAGE:
            raise InputError(
                f"A convolutional network needs square images of side 4 or more: d features with "
                f"√d whole. Got {d} instead; use architecture='dense'."
            )
        layers = [nn.Unflatten(1, (1, side, side))]
        for inside, outside in ((1, 16), (16, 32)):
            convolution = empty(nn.Conv2d, inside, outside, 3, padding=1)
            layers += [convolution, nn.ReLU(), nn.MaxPool2d(2)]
        layers.append(nn.Flatten())
        width = 32 * (side // 4) ** 2
    elif options.architecture != "dense":
        raise InputError(
            f"The 'architecture' parameter must be 'dense' or 'convolutional'. "
            f"Got {options.architecture!r} instead."
        )
    for outside in options.hidden:
        layers += [empty(nn.Linear, width, outside), nn.ReLU()]
        width = outside
    layers.append(empty(nn.Linear, width, k))
    _initialise(layers, generator)
    return nn.Sequential(*layers)


def _initialise(layers: list[Any], generator: Any) -> None:
    # From the learner's own generator: torch's global one does not change.
    from torch import nn

    for layer in layers:
        if isinstance(layer, nn.Linear | nn.Conv2d):
            nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu", generator=generator)
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
    nn.init.zeros_(layers[-1].weight)


def _tensor(values: FloatArray, device: str) -> Any:
    import torch

    return torch.as_tensor(np.ascontiguousarray(values, dtype=np.float32), device=device)
