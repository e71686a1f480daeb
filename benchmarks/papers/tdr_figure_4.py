"""ε of double randomized response with conditional features, over λ, for several orders α.

Busa-Fekete et al. (2023), Figure 4: Theorem 7.1 with the divergence Δ(α) of true from synthetic
images put in, beside Theorem 7.2's floor, which no release of the label at that λ can go below.
Δ(α) is the larger of the two labels'. It is bounded from below, and estimated where the rows allow
it, by discriminators judged on test images; and, as published, by the critic that the
generator was trained against, on the images that it was trained on. That needs a generator that is
trained in this run: a file holds no critic.

Usage: python benchmarks/papers/tdr_figure_4.py DATA_FOLDER [--generator FILE]
           [--device auto|cpu|cuda] [--svg FILE]
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mnist import SEED, Images, fitted_generator, generated
from picture import Line, Panel, save
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from ldpaudit.estimators.discriminators import Kind, fit_discriminator
from ldpaudit.estimators.renyi import (
    RenyiPoint,
    Scores,
    bounds_on,
    renyi_points,
    split_scores,
)
from ldpaudit.mechanisms.response import DummyFeaturesRR
from ldpaudit.mechanisms.with_features import DoubleRR

ORDERS = (1.5, 2.0, 3.0, 5.0)
NOISES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
KINDS: tuple[Kind, ...] = ("network", "logistic")
ERROR = 0.05 / 4
"""Of each bound: the largest over two labels and two discriminators holds at 95 %."""
OWN = "its own critic, in-sample"


@dataclass(frozen=True)
class Divergence:
    """D_α of true from synthetic images of one label, by one discriminator, for every order."""

    label: int
    kind: str
    auc: float
    points: tuple[RenyiPoint, ...]
    lower: tuple[float, ...] | None
    """None where the images judged are those that were learnt from: nothing is certified then."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--generator", type=Path, help="kept here, and read from here if there")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    device = options.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    images = Images.read(options.folder)
    made = fitted_generator(images, options.generator, device)
    found = [divergence(images, made, label, kind, device) for kind in KINDS for label in (0, 1)]
    if made.record is not None:
        found += [by_own_critic(images, made, label) for label in (0, 1)]
    _print_divergences(found)
    least, own = least_deltas(found), estimates(found, OWN)
    _print_epsilons(least, own)
    _print_claims(least, own)
    if options.svg is not None:
        save(options.svg, _panels(least, own))


def divergence(images: Images, made: Any, label: int, kind: Kind, device: str) -> Divergence:
    """Return the divergence of one label.

    Training images fit the discriminator. Test images judge it: neither it nor the generator has
    seen them, so their rows are independent of both, as a certified bound needs.
    """
    rng = np.random.default_rng([SEED, label])
    unseen = images.test_x[images.test_y == label]
    true, fake = _both(images, made, label, rng)
    q = len(fake) // 2
    model = fit_discriminator(true, fake[:q], kind, rng=rng, device=device)
    scores = Scores(model.log_ratio(unseen), model.log_ratio(fake[q:]))
    tuning, test = split_scores(scores, rng=rng)
    bounds = tuple(bound.at(ERROR) for bound in bounds_on(tuning, test, ORDERS))
    return Divergence(label, kind, _auc(test), renyi_points(test, ORDERS), bounds)


def by_own_critic(images: Images, made: Any, label: int) -> Divergence:
    """Return the divergence by the generator's critic, its score turned into log-odds."""
    rng = np.random.default_rng([SEED, label])
    true, fake = _both(images, made, label, rng)
    critic = made._pair.critic.cpu().eval()
    with torch.no_grad():
        parts = [
            critic(torch.from_numpy(2 * x - 1), torch.full((len(x),), label)).numpy()
            for x in (true, fake)
        ]
    score = np.concatenate(parts)[:, None]
    is_true = np.arange(len(score)) < len(true)
    model = LogisticRegression(class_weight="balanced").fit(score, is_true)
    odds = model.decision_function(score)
    scores = Scores(odds[is_true], odds[~is_true])
    return Divergence(label, OWN, _auc(scores), renyi_points(scores, ORDERS), None)


def _both(
    images: Images, made: Any, label: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    true = rng.permutation(images.x[images.y == label])
    return true, generated(made, np.full(2 * len(true), label), rng)


def _auc(scores: Scores) -> float:
    both = np.concatenate([scores.p, scores.q])
    return float(roc_auc_score(np.arange(len(both)) < len(scores.p), both))


def least_deltas(found: list[Divergence]) -> tuple[float, ...]:
    """Return what Δ(α) is at least, at 95 % for each order alone."""
    bounds = np.array([one.lower for one in found if one.lower is not None])
    return tuple(bounds.max(axis=0).tolist())


def estimates(found: list[Divergence], kind: str) -> dict[float, float]:
    """Return Δ̂ by one discriminator at the orders that the rows of both labels support."""
    deltas: dict[float, float] = {}
    chosen = [one for one in found if one.kind == kind]
    for i, order in enumerate(ORDERS):
        if chosen and all(one.points[i].supported for one in chosen):
            deltas[order] = max([*deltas.values(), *(one.points[i].value for one in chosen)])
    return deltas


def _print_divergences(found: list[Divergence]) -> None:
    print("D_α of true from synthetic images in nats: estimate (effective rows; lower bound)\n")
    orders = " | ".join(f"α = {order:g}" for order in ORDERS)
    print(f"| discriminator | digit | AUC | {orders} |\n|---|---:|---:|" + "---|" * len(ORDERS))
    for one in found:
        cells = []
        for i, point in enumerate(one.points):
            bound = "" if one.lower is None else f"; ≥ {one.lower[i]:.2f}"
            mark = "" if point.supported else " unsupported"
            cells.append(f"{point.value:.2f}{mark} ({point.effective_rows:.0f}{bound})")
        print(f"| {one.kind} | {9 * one.label} | {one.auc:.3f} | {' | '.join(cells)} |")


def _print_epsilons(least: tuple[float, ...], own: dict[float, float]) -> None:
    print("\nε in nats: what Theorem 7.1 gives at least (certified bound on Δ) / with the own")
    print("critic's Δ̂ (estimated) / Theorem 7.2's floor (exact)\n")
    orders = " | ".join(f"α = {order:g}" for order in ORDERS)
    print(f"| λ | label alone | {orders} |\n|---:|---:|" + "---:|" * len(ORDERS))
    for noise in NOISES:
        cells = []
        for order, delta in zip(ORDERS, least, strict=True):
            guess = f"{_upper(noise, own[order]):.2f}" if order in own else "–"
            cells.append(f"{_upper(noise, delta):.2f} / {guess} / {_floor(noise, order):.2f}")
        label = DoubleRR((0, 1), noise).epsilon
        print(f"| {noise:g} | {label:.2f} | {' | '.join(cells)} |")


def _upper(noise: float, delta: float) -> float:
    return DoubleRR((0, 1), noise).conditional_epsilon(delta)


def _floor(noise: float, order: float) -> float:
    return DummyFeaturesRR((0, 1), noise).conditional_rdp_floor(order)


def _print_claims(least: tuple[float, ...], own: dict[float, float]) -> None:
    print("\n| published | measured |\n|---|---|")
    words = f"Δ(2) is at least {least[1]:.2f}: no less than {_upper(0.4, least[1]):.2f} at λ = 0.4"
    if 2.0 in own:
        words += f"; by its own critic Δ̂(2) = {own[2.0]:.2f}, ε = {_upper(0.4, own[2.0]):.2f}"
    print(f"| ε is finite, not trivial even for small λ, and falls as λ grows | {words} |")
    print("| with the label alone randomized nothing is guaranteed | ∞ (Theorem 6.1) |")


def _panels(least: tuple[float, ...], own: dict[float, float]) -> list[Panel]:
    noises = np.linspace(0.02, 1.0, 50).tolist()
    lines = []
    for order, delta in zip(ORDERS, least, strict=True):
        values = [_upper(noise, delta) for noise in noises]
        lines.append(Line(f"Theorem 7.1, at least, α = {order:g}", noises, values))
        if order in own:
            values = [_upper(noise, own[order]) for noise in noises]
            lines.append(Line(f"Theorem 7.1, own critic's Δ̂, α = {order:g}", noises, values))
    for order in (ORDERS[0], ORDERS[-1]):
        floors = [_floor(noise, order) for noise in noises]
        lines.append(Line(f"floor of Theorem 7.2, α = {order:g}", noises, floors))
    return [Panel("Double RR on MNIST 0 against 9", "λ", "ε in nats", lines, (0, 18))]


if __name__ == "__main__":
    main()
