"""Training a generator against a critic: balanced batches, early stopping, no silent failure."""

import copy
import time

import numpy as np
import torch
from torch import Tensor, nn

from ldpaudit.release import Float32Array, IntArray
from ldpaudit.running.progress import Progress
from ldpaudit.synthesis.closeness import SlicedDistance
from ldpaudit.synthesis.gan.batches import BalancedBatches
from ldpaudit.synthesis.gan.networks import NetworkPair, draw_noise
from ldpaudit.synthesis.gan.training import StopReason, TrainingLog, TrainingPlan, TrainingRecord

_AVERAGING = 0.998


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
        judged = torch.relu(1 - self._critic(real, labels)).mean()
        judged = judged + torch.relu(1 + self._critic(fake.detach(), labels)).mean()
        self._to_tell.zero_grad(set_to_none=True)
        judged.backward()  # type: ignore[no-untyped-call]
        self._to_tell.step()
        fooled = -self._critic(fake, labels).mean()
        self._to_fool.zero_grad(set_to_none=True)
        fooled.backward()
        self._to_fool.step()
        self._follow()
        return float(judged.detach()), float(fooled.detach())

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
    log = TrainingLog(distance.of(pair.generator, device), distance.floor(rows, labels), plan)
    progress.step(f"generator: {len(rows)} rows, at most {plan.steps} steps")
    start, sums = time.monotonic(), np.zeros(2)
    stopped: StopReason = "steps"
    for step, chosen in zip(range(1, plan.steps + 1), batches, strict=False):
        losses = adversary.step(data[torch.from_numpy(chosen).to(device)], batch_labels)
        log.check(step, losses)
        sums += losses
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
