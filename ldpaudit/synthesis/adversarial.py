"""Training a generator against a critic: balanced batches, early stopping, no silent failure."""

import copy
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from ldpaudit.errors import GeneratorDivergedError
from ldpaudit.progress import Progress
from ldpaudit.release import Float32Array, FloatArray, IndexArray, IntArray
from ldpaudit.synthesis.closeness import SlicedDistance
from ldpaudit.synthesis.networks import NetworkPair, draw_noise

StopReason = Literal["steps", "no-improvement", "time"]

_AVERAGING = 0.998
_UNBEATEN = 0.02
_LOST_IN_A_ROW = 8
_NO_BETTER = 0.7


@dataclass(frozen=True)
class TrainingPlan:
    """How long and how fast a generator is trained.

    Attributes
    ----------
    steps : int
        At most so many steps of the generator.
    seconds : float
        At most so long; reached, it makes the result depend on the machine's speed.
    batch : int
        Rows in a batch, an equal number of each class.
    learning_rate : float
        Adam's step of the generator; the critic's is twice that.
    evaluate_every : int
        Steps between two looks at the distance to held-out rows.
    patience : int
        Training stops after so many looks without an improvement.
    """

    steps: int
    seconds: float
    batch: int
    learning_rate: float
    evaluate_every: int = 200
    patience: int = 8


@dataclass(frozen=True)
class TrainingRecord:
    """What happened.

    Attributes
    ----------
    steps : int
        Steps made.
    stopped : {"steps", "no-improvement", "time"}
        Which limit ended the training.
    at : tuple of int
        The steps at which training was looked at.
    critic_loss, generator_loss, distance : tuples of float
        At each look: the two mean losses since the last one, and the distance between generated
        and held-out rows.
    """

    steps: int
    stopped: StopReason
    at: tuple[int, ...]
    critic_loss: tuple[float, ...]
    generator_loss: tuple[float, ...]
    distance: tuple[float, ...]


class BalancedBatches:
    """Endless batches with equally many rows of each class; small classes come round more often.

    Parameters
    ----------
    labels : int32 array of shape (n,)
    classes : int
    batch : int
        Rows of a batch, at least two of each class.
    rng : numpy.random.Generator
    """

    def __init__(
        self, labels: IntArray, classes: int, batch: int, rng: np.random.Generator
    ) -> None:
        per_class = max(batch // classes, 2)
        self._pools = [np.flatnonzero(labels == y) for y in range(classes)]
        self.labels = np.repeat(np.arange(classes, dtype=np.int32), per_class)
        self._per_class, self._rng = per_class, rng

    def __iter__(self) -> Iterator[IndexArray]:
        """Yield rows, int64 of shape (batch,)."""
        queues: list[IndexArray] = [np.zeros(0, dtype=np.int64) for _ in self._pools]
        while True:
            for y, pool in enumerate(self._pools):
                while len(queues[y]) < self._per_class:
                    queues[y] = np.concatenate([queues[y], self._rng.permutation(pool)])
            yield np.concatenate([queue[: self._per_class] for queue in queues])
            queues = [queue[self._per_class :] for queue in queues]


class Adversary:
    """One generator in training: its networks, optimisers, noise and averaged weights.

    The released generator has the exponential average of the weights that were trained
    (Yazıcı et al. 2019), which is steadier than any of them.
    """

    def __init__(self, pair: NetworkPair, plan: TrainingPlan, seed: int, device: str) -> None:
        self._pair, self._device = pair, device
        self._noise = torch.Generator().manual_seed(seed)
        self._generator = pair.generator.to(device).train()
        self._critic = pair.critic.to(device).train()
        rate = plan.learning_rate
        betas = (0.5, 0.99)
        self._to_fool = torch.optim.Adam(self._generator.parameters(), rate, betas)
        self._to_tell = torch.optim.Adam(self._critic.parameters(), 2 * rate, betas)
        self._average = {k: v.detach().clone() for k, v in self._generator.state_dict().items()}
        self._step = 0

    def step(self, real: Tensor, labels: Tensor) -> tuple[float, float]:
        """Train both once with the hinge loss; return the critic's and the generator's loss."""
        fake = self._generate(labels)
        told = torch.relu(1 - self._critic(real, labels)).mean()
        told = told + torch.relu(1 + self._critic(fake.detach(), labels)).mean()
        self._to_tell.zero_grad(set_to_none=True)
        told.backward()  # type: ignore[no-untyped-call]
        self._to_tell.step()
        fooled = -self._critic(fake, labels).mean()
        self._to_fool.zero_grad(set_to_none=True)
        fooled.backward()
        self._to_fool.step()
        self._follow()
        return float(told.detach()), float(fooled.detach())

    def averaged(self) -> dict[str, Tensor]:
        """Return a copy of the averaged weights."""
        return {name: value.clone() for name, value in self._average.items()}

    def _generate(self, labels: Tensor) -> Tensor:
        normal, gumbel = draw_noise(len(labels), self._pair.codes, self._noise)
        made: Tensor = self._generator(normal.to(self._device), labels, gumbel.to(self._device))
        return made

    def _follow(self) -> None:
        self._step += 1
        keep = min(_AVERAGING, self._step / (self._step + 10))
        for name, value in self._generator.state_dict().items():
            if value.dtype.is_floating_point:
                self._average[name].mul_(keep).add_(value.detach(), alpha=1 - keep)
            else:
                self._average[name].copy_(value)


def train(
    pair: NetworkPair,
    rows: Float32Array,
    labels: IntArray,
    plan: TrainingPlan,
    distance: SlicedDistance,
    *,
    rng: np.random.Generator,
    seed: int,
    device: str,
    progress: Progress,
) -> TrainingRecord:
    """Train a pair of networks; the generator then holds the best averaged weights.

    Parameters
    ----------
    pair : NetworkPair
    rows : float32 array of shape (n, width)
    labels : int32 array of shape (n,)
    plan : TrainingPlan
    distance : SlicedDistance
        To rows that are not among ``rows``: what early stopping looks at.
    rng : numpy.random.Generator
        Draws the batches.
    seed : int
        Of the networks' noise.
    device : str
        A torch device.
    progress : Progress

    Raises
    ------
    GeneratorDivergedError
        If a loss or the distance is no number, the critic is unbeaten for 8 looks in a row, or the
        best weights are hardly nearer to held-out rows than the untrained ones.
    """
    batches = BalancedBatches(labels, len(distance.classes), plan.batch, rng)
    data = torch.from_numpy(rows).to(device)
    batch_labels = torch.from_numpy(batches.labels.astype(np.int64)).to(device)
    adversary = Adversary(pair, plan, seed, device)
    log = _Log(distance.of(pair.generator, device), plan)
    progress.step(f"generator: {len(rows)} rows, at most {plan.steps} steps")
    start, sums = time.monotonic(), np.zeros(2)
    stopped: StopReason = "steps"
    for step, chosen in zip(range(1, plan.steps + 1), batches, strict=False):
        sums += adversary.step(data[torch.from_numpy(chosen).to(device)], batch_labels)
        if step % plan.evaluate_every and step != plan.steps:
            continue
        weights = adversary.averaged()
        log.look(step, sums, weights, distance.of(_with(pair.generator, weights), device))
        sums = np.zeros(2)
        progress.advance(step, plan.steps)
        if log.patience_is_over:
            stopped = "no-improvement"
            break
        if time.monotonic() - start > plan.seconds:
            stopped = "time"
            break
    progress.step(log.summary())
    pair.generator.load_state_dict(log.best_weights())
    pair.generator.eval()
    return log.record(stopped)


def _with(generator: nn.Module, weights: dict[str, Tensor]) -> nn.Module:
    """Return a copy of the network with other weights."""
    other = copy.deepcopy(generator)
    other.load_state_dict(weights)
    return other


class _Log:
    """What training looked like so far, and the best weights."""

    def __init__(self, untrained: float, plan: TrainingPlan) -> None:
        self._untrained, self._plan = untrained, plan
        self._at: list[int] = []
        self._losses: list[tuple[float, float]] = []
        self._distances: list[float] = []
        self._best: dict[str, Tensor] | None = None
        self._lost = 0

    def look(
        self, step: int, sums: FloatArray, weights: dict[str, Tensor], distance: float
    ) -> None:
        """Add one look; raise if training has failed."""
        steps = step - (self._at[-1] if self._at else 0)
        critic, generator = float(sums[0] / steps), float(sums[1] / steps)
        if not (math.isfinite(critic) and math.isfinite(generator) and math.isfinite(distance)):
            raise GeneratorDivergedError(
                f"Training the generator failed after {step} steps: a loss is no finite number. "
                f"Nothing is kept; use a smaller learning rate."
            )
        if not self._distances or distance < min(self._distances):
            self._best = weights
        self._at.append(step)
        self._losses.append((critic, generator))
        self._distances.append(distance)
        self._lost = self._lost + 1 if critic < _UNBEATEN else 0
        if self._lost >= _LOST_IN_A_ROW:
            raise GeneratorDivergedError(
                f"Training the generator failed after {step} steps: the critic tells every "
                f"generated row. Nothing is kept; use a smaller learning rate or more rows."
            )

    @property
    def patience_is_over(self) -> bool:
        """Whether the last looks brought nothing."""
        looks = len(self._distances)
        return looks - 1 - int(np.argmin(self._distances)) >= self._plan.patience

    def best_weights(self) -> dict[str, Tensor]:
        """Return the weights nearest to held-out rows; raise if they are not near at all."""
        if self._best is None or min(self._distances) > _NO_BETTER * self._untrained:
            raise GeneratorDivergedError(
                f"Training the generator failed: after {self._at[-1]} steps its rows are hardly "
                f"nearer to held-out ones than those of an untrained generator. Nothing is kept."
            )
        return self._best

    def summary(self) -> str:
        """Return the last look as a phrase."""
        critic, generator = self._losses[-1]
        return (
            f"generator: {self._at[-1]} steps, critic's loss {critic:.3g}, generator's loss "
            f"{generator:.3g}, distance {min(self._distances):.3g}"
        )

    def record(self, stopped: StopReason) -> TrainingRecord:
        """Return everything."""
        critic, generator = zip(*self._losses, strict=True)
        return TrainingRecord(
            self._at[-1], stopped, tuple(self._at), critic, generator, tuple(self._distances)
        )
