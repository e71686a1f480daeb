"""A neural network as a discriminator: dense, or convolutional for square images."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpaudit.device import need_torch
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.renyi.discriminators.inputs import Inputs
from ldpaudit.modelling.networks import in_blocks, torch_threads, train
from ldpaudit.randomness import integer_seed
from ldpaudit.release import BoolArray, Float32Array, FloatArray

_WIDTH = 64
_CHANNELS = 16
_BATCH = 512
_PASSES = 12
_STEPS = 2_500
_PATIENCE = 3
_RATE = 2e-3
_DECAY = 1e-4


@dataclass(frozen=True)
class NetworkDiscriminator:
    """A fitted network and its inputs."""

    inputs: Inputs
    side: int
    module: Any
    device: str
    threads: int

    def log_odds(self, rows: Float32Array) -> FloatArray:
        """Return the log-odds of P, block by block."""
        import torch

        def outputs(block: Float32Array) -> Any:
            prepared = _prepared(block, self.inputs, self.side)
            return self.module(torch.from_numpy(prepared).to(self.device))

        with torch_threads(self.threads):
            return in_blocks(outputs, rows)


def fit_network(
    rows: Float32Array,
    is_p: BoolArray,
    categorical: BoolArray,
    image: bool,
    rng: np.random.Generator,
    device: str = "cpu",
    threads: int = 1,
) -> NetworkDiscriminator:
    """Fit it by Adam on the logistic loss, sides weighted equally, stopped on held-out rows.

    Raises
    ------
    MissingDependencyError
        If torch is not installed.
    InsufficientDataError
        If no column varies.
    """
    need_torch("Telling images apart by a network")
    import torch

    inputs = Inputs.fit(rows, categorical)
    side = math.isqrt(rows.shape[1]) if image else 0
    matrix = _prepared(rows, inputs, side)
    if matrix.shape[1] == 0:
        raise InsufficientDataError("A discriminator needs a column that varies.")
    generator = torch.Generator().manual_seed(integer_seed(rng))
    with torch.random.fork_rng(devices=[]):  # layers draw from the global generator when built
        module = _convolutional(side) if side else _dense(matrix.shape[1])
    _initialise(module, generator)
    with torch_threads(threads):
        _train(module.to(device), matrix, is_p, generator, device)
    return NetworkDiscriminator(inputs, side, module, device, threads)


def _prepared(rows: Float32Array, inputs: Inputs, side: int) -> Float32Array:
    """Return standardised columns, or images standardised as a whole."""
    if not side:
        return inputs.transform(rows)
    scaling = inputs.design.scaling
    centre, spread = float(scaling.center.mean()), float(np.sqrt(np.square(scaling.scale).mean()))
    pixels = np.nan_to_num((rows - centre) / max(spread, 1e-12), nan=0.0)
    return np.asarray(pixels.reshape(-1, 1, side, side), dtype=np.float32)


def _dense(width: int) -> Any:
    from torch import nn

    return nn.Sequential(
        nn.Linear(width, _WIDTH),
        nn.SiLU(),
        nn.Linear(_WIDTH, _WIDTH),
        nn.SiLU(),
        nn.Linear(_WIDTH, 1),
        nn.Flatten(0),
    )


def _convolutional(side: int) -> Any:
    from torch import nn

    left = (side + 3) // 4
    return nn.Sequential(
        nn.Conv2d(1, _CHANNELS, 3, stride=2, padding=1),
        nn.SiLU(),
        nn.Conv2d(_CHANNELS, 2 * _CHANNELS, 3, stride=2, padding=1),
        nn.SiLU(),
        nn.Flatten(),
        nn.Linear(2 * _CHANNELS * left * left, _WIDTH),
        nn.SiLU(),
        nn.Linear(_WIDTH, 1),
        nn.Flatten(0),
    )


def _initialise(module: Any, generator: Any) -> None:
    """Draw the weights anew from a generator of their own."""
    from torch import nn

    for weights in module.parameters():
        if weights.dim() > 1:
            nn.init.kaiming_uniform_(weights, a=math.sqrt(5), generator=generator)
        else:
            nn.init.zeros_(weights)


def _train(module: Any, matrix: Float32Array, is_p: BoolArray, generator: Any, device: str) -> None:
    import torch

    order = torch.randperm(len(matrix), generator=generator)
    x = torch.from_numpy(matrix)[order].to(device)
    y = torch.from_numpy(is_p.astype(np.float32))[order].to(device)
    held = max(len(matrix) // 10, 1)
    balance = float((1 - is_p.mean()) / max(float(is_p.mean()), 1e-12))
    loss_of = torch.nn.BCEWithLogitsLoss(pos_weight=torch.tensor(balance, device=device))
    per_pass = max((len(matrix) - held) // _BATCH, 1)
    train(
        module,
        lambda rows: loss_of(module(x[rows]), y[rows]),
        (
            _batches(held, len(matrix), generator)
            for _ in range(max(min(_PASSES, _STEPS // per_pass), 1))
        ),
        slice(0, held),
        rate=_RATE,
        decay=_DECAY,
        patience=_PATIENCE,
    )


def _batches(first: int, end: int, generator: Any) -> Iterator[Any]:
    import torch

    order = first + torch.randperm(end - first, generator=generator)
    return (order[start : start + _BATCH] for start in range(0, len(order), _BATCH))
