"""Training keeps the best pass on held-out rows, and ends where nothing gets better."""

from collections.abc import Iterator

import numpy as np
import torch

from ldpaudit.models.network import in_blocks, torch_threads, train


class Line:
    """A mean loss |w − goal| of one weight, with a goal of its own for held-out rows."""

    def __init__(self, held: float) -> None:
        self.module = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.zeros_(self.module.weight)
        self.held, self.passes = held, 0

    def mean_loss(self, rows: str) -> torch.Tensor:
        goal = self.held if rows == "held" else 1.0
        return (self.module.weight - goal).abs().sum()

    def batches(self, most: int) -> Iterator[list[str]]:
        for _ in range(most):
            self.passes += 1
            yield ["training"]

    @property
    def weight(self) -> float:
        return float(self.module.weight.detach())


def test_the_best_pass_on_held_out_rows_is_kept() -> None:
    line = Line(held=0.25)
    train(line.module, line.mean_loss, line.batches(60), "held", rate=0.05, decay=0.0)
    assert line.passes == 60
    assert abs(line.weight - 0.25) < 0.03


def test_training_ends_when_patience_does() -> None:
    line = Line(held=0.25)
    train(line.module, line.mean_loss, line.batches(60), "held", rate=0.05, decay=0.0, patience=3)
    assert line.passes < 12


def test_without_held_out_rows_the_last_pass_is_kept() -> None:
    line = Line(held=0.25)
    train(line.module, line.mean_loss, line.batches(60), None, rate=0.05, decay=0.0)
    assert abs(line.weight - 1.0) < 0.1


def test_the_first_steps_are_short_where_asked() -> None:
    lines = [Line(held=1.0), Line(held=1.0)]
    for line, warm in zip(lines, (1, 10), strict=True):
        train(line.module, line.mean_loss, line.batches(1), None, rate=0.1, decay=0.0, warm=warm)
    assert np.isclose(lines[0].weight, 10 * lines[1].weight)


def test_blocks_and_threads_change_nothing() -> None:
    rows = torch.arange(20_000, dtype=torch.float32)
    before = torch.get_num_threads()
    with torch_threads(0):
        assert torch.get_num_threads() == 1
        assert np.array_equal(in_blocks(lambda block: block * 2, rows), np.arange(20_000) * 2.0)
    assert torch.get_num_threads() == before
