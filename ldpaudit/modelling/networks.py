"""Training of small neural networks: AdamW, the best pass on held-out rows kept.

torch takes seconds to import and is imported on first use.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ldpaudit.release import FloatArray

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

    Parameters
    ----------
    module : torch.nn.Module
        Changed in place.
    mean_loss : callable
        Takes an index of rows, and returns the module's mean loss on them as a tensor.
    passes : iterable of iterables
        For each pass over the rows its batches, each an index of rows.
    held : index of rows, optional
        The rows held out; None keeps the last pass.
    rate, decay : float
        The step size and the weight decay of AdamW.
    warm : int
        Steps over which the step size grows to its full length.
    patience : float
        Training ends after so many passes in a row that are no improvement.
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
