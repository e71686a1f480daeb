"""Label inference and test accuracy on MNIST 0 against 9: one or both coordinates randomized.

Busa-Fekete et al. (2023), Figure 3. A convolutional network is trained on each release with an
unbiased loss. Its *label-inference accuracy* is the share of released rows whose true label it
predicts from the released features alone, in-sample as published; beside it the same cross-fitted,
and what attackers reach who also look at the released label or know the generator.

λ is the chance that a coordinate is replaced. For two labels the label then flips with chance λ/2;
the paper calls λ a "label flipping probability" as well, so both readings are printed.

Usage: python benchmarks/papers/tdr_figure_3.py DATA_FOLDER [--generator FILE] [--lambdas 0.1,0.4]
           [--device auto|cpu|cuda] [--svg FILE]
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mnist import SEED, Images, as_features, fitted_generator, generated
from picture import save
from tdr_figure_3_tables import Point, panels, print_accuracies, print_attackers, print_claims

from ldpaudit.attacks.interface import conditioned
from ldpaudit.attacks.synthetic_aware import by_discriminator, original_share
from ldpaudit.estimators.discriminators import fit_discriminator
from ldpaudit.learners import ReleaseClassifier
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.with_features import DoubleRR
from ldpaudit.models.network import NetworkOptions
from ldpaudit.release import SyntheticTable

CLASSES = (0, 1)
LAMBDAS = (0.1, 0.2, 1 / 3, 0.4, 2 / 3, 0.8)
"""Up to 0.4 as printed; 2/3 and 0.8 are 1/3 and 0.4 where λ is read as a flip probability."""
TABLE_ROWS = 6000
"""Synthetic rows of both labels together."""

Fit = Callable[[np.ndarray], Any]


@dataclass(frozen=True)
class Released:
    """What one run of double randomized response gave out, and the table it drew from."""

    x: np.ndarray
    labels: np.ndarray
    table: np.ndarray
    table_labels: np.ndarray


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    device = options.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    images = Images.read(options.folder)
    made = fitted_generator(images, options.generator, device)
    print(f"{len(images.x)} training and {len(images.test_x)} test images, device {device}.\n")
    points = []
    for noise in options.lambdas:
        points.append(measured(images, made, noise, device))
        print(f"λ = {noise:.3f}: {points[-1].seconds:.0f} s of processor time.", flush=True)
    print_accuracies(points)
    print_attackers(points)
    print_claims(points)
    if options.svg is not None:
        save(options.svg, panels(points))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--generator", type=Path, help="kept here, and read from here if there")
    parser.add_argument("--lambdas", type=_numbers, default=LAMBDAS)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--svg", type=Path)
    return parser.parse_args()


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))


def measured(images: Images, made: Any, noise: float, device: str) -> Point:
    """Release at one λ by both mechanisms, learn, attack."""
    started = time.process_time()
    rng = np.random.default_rng([SEED, round(1e6 * noise)])
    halves = rng.permutation(len(images.y)) % 2
    plain = RandomizedResponse(CLASSES, noise)
    labels = plain.sample(images.y, rng)
    rr, rr_test = learnt(_backward(images.x, labels, plain, device), images)
    rr_cross = crossed(_backward(images.x, labels, plain, device), images.x, halves)
    found = released(images, made, DoubleRR(CLASSES, noise), rng)
    first = _backward(found.x, found.labels, plain, device)
    unbiased = _unbiased(found, DoubleRR(CLASSES, noise), device)
    first_model, first_test = learnt(first, images)
    model, test = learnt(unbiased, images)
    cross = crossed(unbiased, found.x, halves)
    truth = images.y
    return Point(
        noise=noise,
        rr_in_sample=right(rr.predict_proba(images.x), truth),
        rr_cross=right(rr_cross, truth),
        rr_test=rr_test,
        first_in_sample=right(first_model.predict_proba(found.x), truth),
        first_test=first_test,
        double_in_sample=right(model.predict_proba(found.x), truth),
        double_cross=right(cross, truth),
        double_test=test,
        label_alone=float(np.mean(found.labels == truth)),
        with_label=right(_aware(found, cross, 1 - noise, plain), truth),
        **_knowing(images, made, found, cross, plain, rng),
        seconds=time.process_time() - started,
    )


def released(images: Images, made: Any, mechanism: DoubleRR, rng: np.random.Generator) -> Released:
    """Return a release by double randomized response."""
    table_labels = np.arange(TABLE_ROWS, dtype=np.int32) % 2
    table = generated(made, table_labels, rng)
    drawn = mechanism.sample(images.y, table_labels, rng)
    replaced = (drawn.synthetic_rows >= 0)[:, None]
    x = np.where(replaced, table[drawn.synthetic_rows], images.x)
    return Released(x, drawn.labels, table, table_labels)


def learnt(fit: Fit, images: Images) -> tuple[Any, float]:
    """Return the model of all rows and its accuracy on the test images."""
    model = fit(np.arange(len(images.y)))
    return model, right(model.predict_proba(images.test_x), images.test_y)


def crossed(fit: Fit, x: np.ndarray, halves: np.ndarray) -> np.ndarray:
    """Return P(y | x̃) of each row by a model of the other half, shape (n, 2)."""
    answers = np.empty((len(x), 2))
    for half in (0, 1):
        model = fit(np.flatnonzero(halves != half))
        answers[halves == half] = model.predict_proba(x[halves == half])
    return answers


def right(posterior: np.ndarray, truth: np.ndarray) -> float:
    """Return the share of rows whose likeliest label is the true one."""
    return float(np.mean(posterior.argmax(axis=1) == truth))


def _network(device: str) -> NetworkOptions:
    return NetworkOptions("convolutional", epochs=3, batch_size=256, device=device)


def _backward(x: np.ndarray, labels: np.ndarray, plain: RandomizedResponse, device: str) -> Fit:
    """Correct for the label's noise alone: under double RR the paper's "first term"."""

    def fit(rows: np.ndarray) -> Any:
        learner = ReleaseClassifier(
            plain, model="network", correction="backward", labels="codes", network=_network(device)
        )
        return learner.fit(x[rows], labels[rows])

    return fit


def _unbiased(found: Released, mechanism: DoubleRR, device: str) -> Fit:
    """Correct for the synthetic features, too."""

    def fit(rows: np.ndarray) -> Any:
        learner = ReleaseClassifier(
            mechanism,
            model="network",
            correction="unbiased",
            labels="codes",
            network=_network(device),
        )
        return learner.fit(
            found.x[rows],
            found.labels[rows],
            synthetic=found.table,
            synthetic_labels=found.table_labels,
        )

    return fit


def _knowing(
    images: Images,
    made: Any,
    found: Released,
    posterior: np.ndarray,
    plain: RandomizedResponse,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Return the attacks of who holds other rows of the generator, and of who holds the table."""
    accuracy = {}
    others = generated(made, found.table_labels, rng)
    linear = fit_discriminator(others, found.x, "logistic", rng=rng)
    original = by_discriminator(linear, plain.noise)(as_features(found.x))
    accuracy["knows_linearly"] = right(_aware(found, posterior, original, plain), images.y)
    for name, table in (("knows_generator", others), ("knows_table", found.table)):
        known = SyntheticTable(as_features(table), found.table_labels)
        share = original_share(as_features(found.x), known, plain.noise, 2, rng)
        original = share(as_features(found.x))
        accuracy[name] = right(_aware(found, posterior, original, plain), images.y)
    return accuracy


def _aware(
    found: Released, posterior: np.ndarray, original: Any, plain: RandomizedResponse
) -> np.ndarray:
    """Return P(y | x̃, ỹ) ∝ T[y, ỹ] (w η_y(x̃) + (1 − w)/2), w the chance of an original row."""
    weight = np.broadcast_to(np.asarray(original), len(posterior))[:, None]
    own = plain.channel.matrix.T[found.labels]
    return conditioned(weight * posterior + (1 - weight) / 2, own)


if __name__ == "__main__":
    main()
