"""Synthetic features for double randomized response: how long, how realistic, how much by heart.

MNIST 0 against 9: a convolutional GAN, then a release by double randomized response at λ = 1/3 and
a network trained on that release with the unbiased loss. Adult: the generators against drawing
each column on its own within a class, which is what takes no generator at all.

Usage: python benchmarks/synthesis.py [--only images|adult] DATA_FOLDER
"""

import argparse
import platform
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from scipy.stats import ks_2samp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from ldpaudit.estimators.discriminators import fit_discriminator
from ldpaudit.estimators.intervals.ranking import auc
from ldpaudit.estimators.synthetic import count_memorisation
from ldpaudit.learners import ReleaseClassifier
from ldpaudit.mechanisms.with_features import DoubleRR
from ldpaudit.models.network import NetworkOptions
from ldpaudit.synthesis import generator

SEED = 20260101
NOISE = 1 / 3
HELD_OUT = 1500
CNN = NetworkOptions(architecture="convolutional", epochs=3, learning_rate=5e-4, batch_size=256)
"""The step was set when the learner's usual one of 3e-3 still ended in one constant answer."""


def images(folder: Path) -> None:
    data = np.load(folder / "mnist.npz")
    x, y = zero_or_nine(data["x_train"], data["y_train"])
    test_x, test_y = zero_or_nine(data["x_test"], data["y_test"])
    rng = np.random.default_rng(SEED)
    order = rng.permutation(len(x))
    held_out, train = order[:HELD_OUT], order[HELD_OUT:]
    x0, x, y = x[held_out], x[train], y[train]
    print(f"MNIST 0 against 9: {len(x)} training images, {HELD_OUT} held out, one thread.\n")
    print("| generator | seconds | CPU s | labelled right | AUC | memorisation | accuracy |")
    print("|---|---:|---:|---:|---:|---|---:|")
    judge = ReleaseClassifier(model="network", correction=None, network=CNN).fit(x, y)
    real = float(np.mean(judge.predict(test_x) == test_y))
    for name in ("gan", "mixture"):
        start, worked = time.perf_counter(), time.process_time()
        # Steps and not the clock end the training, however busy the machine is.
        limits = {"seconds": 3600.0} if name == "gan" else {}
        made = generator(name, trained_on="public", **limits).fit(as_lists(x), y, 2, rng=rng)
        seconds, worked = time.perf_counter() - start, time.process_time() - worked
        asked = np.repeat([0, 1], 3000).astype(np.int32)
        fake = as_matrix(made.sample(asked, rng))
        right = np.mean(judge.predict(fake) == asked)
        auc_value = told_apart(x, y, fake, rng)
        counts = count_memorisation(x, x0, fake, rng)
        accuracy = trained_on_release(x, y, fake, asked, test_x, test_y, rng)
        row = f"{name} | {seconds:.0f} | {worked:.0f} | {right:.2%} | {auc_value:.3f}"
        won = f"{counts.wins} of {counts.decisive}, p = {counts.p_value:.2g}"
        copies = f"{counts.training_copies} copies"
        print(f"| {row} | {won}, {copies} | {accuracy:.2%} |", flush=True)
    print(f"\nThe same network trained on the true images and labels: {real:.2%}.\n")


def zero_or_nine(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    chosen = (y == 0) | (y == 9)
    pixels = (x[chosen].reshape(-1, 784) / 255).astype(np.float32)
    return pixels, (y[chosen] == 9).astype(np.int32)


def as_lists(x: np.ndarray) -> pa.Table:
    column = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), x.shape[1])
    return pa.table({"image": column})


def as_matrix(table: pa.Table) -> np.ndarray:
    flat = pc.list_flatten(table.column(0)).to_numpy()
    return np.asarray(flat, dtype=np.float32).reshape(len(table), -1)


def told_apart(x: np.ndarray, y: np.ndarray, fake: np.ndarray, rng: np.random.Generator) -> float:
    """Return the AUC of a network that tells true from synthetic images, on images new to it."""
    each = len(fake) // 2
    true = np.concatenate([x[y == label][:each] for label in (0, 1)])
    p, q = rng.permutation(true), rng.permutation(fake)
    half = len(q) // 2
    model = fit_discriminator(p[:half], q[:half], "network", rng=rng)
    return auc(model.log_ratio(p[half:]), model.log_ratio(q[half:]))


def trained_on_release(
    x: np.ndarray,
    y: np.ndarray,
    fake: np.ndarray,
    fake_y: np.ndarray,
    test_x: np.ndarray,
    test_y: np.ndarray,
    rng: np.random.Generator,
) -> float:
    """Return the test accuracy of a network that saw nothing but the release and the table."""
    mechanism = DoubleRR((0, 1), NOISE)
    drawn = mechanism.sample(y, fake_y, rng)
    replaced = drawn.synthetic_rows >= 0
    released = np.where(replaced[:, None], fake[drawn.synthetic_rows], x)
    learner = ReleaseClassifier(mechanism, model="network", correction="unbiased", network=CNN)
    learner.fit(released, drawn.labels, synthetic=fake, synthetic_labels=fake_y)
    return float(np.mean(learner.predict(test_x) == test_y))


def adult(folder: Path) -> None:
    table = pq.read_table(folder / "adult.parquet")
    y = np.asarray(pc.equal(table["income"], ">50K")).astype(np.int32)
    train = np.asarray(pc.equal(table["split"], "train"))
    table = table.drop_columns(["income", "split"])
    true, labels = table.filter(pa.array(train)), y[train]
    test, test_y = as_codes(table.filter(pa.array(~train)), table), y[~train]
    kinds = [not pa.types.is_integer(kind) for kind in table.schema.types]
    x = as_codes(true, table)
    print(f"Adult: {len(true)} training rows, {table.num_columns} columns, one thread.\n")
    print("| generator | seconds | CPU s | marginals | AUC | accuracy |")
    print("|---|---:|---:|---:|---:|---:|")
    accuracy = boosted(kinds).fit(x, labels).score(test, test_y)
    print(f"| the true rows | – | – | 0 | 0.5 | {accuracy:.2%} |")
    for name in ("each column alone", "mixture", "gan"):
        rng = np.random.default_rng(SEED)
        start, worked = time.perf_counter(), time.process_time()
        if name in ("gan", "mixture"):
            fitted = generator(name, trained_on="public").fit(true, labels, 2, rng=rng)
            made = as_codes(fitted.sample(labels, rng), table)
        else:
            made = shuffled(x, labels, rng)
        seconds, worked = time.perf_counter() - start, time.process_time() - worked
        far = np.mean([distance(x, made, labels, j, kinds[j]) for j in range(x.shape[1])])
        accuracy = boosted(kinds).fit(made, labels).score(test, test_y)
        told = two_samples(x, made, kinds, rng)
        print(
            f"| {name} | {seconds:.1f} | {worked:.1f} | {far:.3f} | {told:.3f} | {accuracy:.2%} |",
            flush=True,
        )


def as_codes(rows: pa.Table, table: pa.Table) -> np.ndarray:
    columns = []
    for name in table.column_names:
        if pa.types.is_integer(table[name].type):
            columns.append(rows[name].to_numpy().astype(float))
        else:
            found = pc.index_in(rows[name], pc.unique(table[name]), skip_nulls=False)
            columns.append(found.to_numpy().astype(float))
    return np.stack(columns, axis=1)


def boosted(kinds: list[bool]) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(categorical_features=kinds, random_state=0)


def shuffled(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    made = x.copy()
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        for j in range(x.shape[1]):
            made[rows, j] = x[rng.choice(rows, len(rows)), j]
    return made


def distance(x: np.ndarray, made: np.ndarray, y: np.ndarray, j: int, kind: bool) -> float:
    """Return the mean over classes: total variation of codes, Kolmogorov–Smirnov of numbers."""
    found = []
    for label in (0, 1):
        a, b = x[y == label, j], made[y == label, j]
        if kind:
            size = int(x[:, j].max()) + 1
            shares = [np.bincount(v.astype(int), minlength=size) / len(v) for v in (a, b)]
            found.append(np.abs(shares[0] - shares[1]).sum() / 2)
        else:
            found.append(ks_2samp(a, b).statistic)
    return float(np.mean(found))


def two_samples(
    x: np.ndarray, made: np.ndarray, kinds: list[bool], rng: np.random.Generator
) -> float:
    both, is_true = np.concatenate([x, made]), np.arange(2 * len(x)) < len(x)
    order = rng.permutation(len(both))
    fit, test = order[: len(x)], order[len(x) :]
    model = boosted(kinds).fit(both[fit], is_true[fit])
    return float(roc_auc_score(is_true[test], model.predict_proba(both[test])[:, 1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=("images", "adult"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"Python {platform.python_version()}, torch {torch.__version__}.\n")
    if options.only != "adult":
        images(options.folder)
    if options.only != "images":
        adult(options.folder)


if __name__ == "__main__":
    main()
