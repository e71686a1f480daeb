from collections.abc import Iterator

import numpy as np
import pytest
import torch

from ldpaudit.extras.kinds.mechanisms.with_features import DoubleRR
from ldpaudit.learners import ReleaseClassifier
from ldpaudit.models.network import NetworkOptions, in_blocks, torch_threads, train


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.mark.parametrize("architecture", ["dense", "convolutional"])
def test_before_the_first_steps_every_label_is_as_likely(architecture):
    rng = np.random.default_rng(1)
    X, y = 50 * rng.random((300, 64)), rng.integers(0, 3, 300)
    options = NetworkOptions(architecture, epochs=1, learning_rate=1e-12)
    learner = ReleaseClassifier(model="network", network=options).fit(X, y)
    np.testing.assert_allclose(learner.predict_proba(X), 1 / 3, atol=1e-6)


def test_large_soft_labels_do_not_make_it_sure_of_chance():
    """Double randomized response at λ = 0.8: a flip probability of 0.4, a fifth of rows kept."""
    right = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        pattern = np.zeros((2, 16))
        pattern[:, :8] = [[-1.0], [1.0]]
        truth, made = rng.integers(0, 2, 3000).astype(np.int32), np.arange(1500, dtype=np.int32) % 2
        own = pattern[truth] + 0.5 * rng.normal(size=(3000, 16))
        # Synthetic rows that a network tells apart: their second half is shifted.
        table = pattern[made] + 0.5 * rng.normal(size=(1500, 16)) + 2.0 * (np.arange(16) >= 8)
        mechanism = DoubleRR((0, 1), 0.8)
        drawn = mechanism.sample(truth, made, rng)
        x = np.where((drawn.synthetic_rows >= 0)[:, None], table[drawn.synthetic_rows], own)
        network = NetworkOptions(epochs=10)
        learner = ReleaseClassifier(
            mechanism, model="network", correction="unbiased", labels="codes", network=network
        )
        learner.fit(x, drawn.labels, synthetic=table, synthetic_labels=made)
        right.append(np.mean(learner.predict(own) == truth))
    # With a loss bounded by 7 nats the mean is .95, and one fit of eight is at .50.
    assert min(right) > 0.98


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
    line = Line(held=0.25)
    train(line.module, line.mean_loss, line.batches(60), "held", rate=0.05, decay=0.0, patience=3)
    assert line.passes < 12
    line = Line(held=0.25)  # Without held-out rows the last pass is kept.
    train(line.module, line.mean_loss, line.batches(60), None, rate=0.05, decay=0.0)
    assert abs(line.weight - 1.0) < 0.1
    # The first steps are short where asked.
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
