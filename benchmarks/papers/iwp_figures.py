"""Curves of Dufraiche et al. (IWP-SGD): figures 1 to 7, with Adult in place of ACSIncome.

Each part runs by itself and keeps its curves in a folder; ``draw`` makes tables and pictures.

- ``synthetic``: figures 1 (exponential loss) and 5 (log loss): ``make_classification`` scaled to
  [−1, 1]^p, n = 10⁶, new data and noise in each draw; ε = 2 at p = 2, ε = 5 at p = 10, δ = 1e-5.
- ``adult``: figures 2 and 4 (exponential), 6 and 7 (log): income from age, education and hours,
  each scaled to [−1, 1], ε = 2. A fifth of the rows is the test set; the others are drawn with
  replacement to the paper's 535,087 training rows, each with noise of its own.
- ``truncation``: figure 3, the bias of the log loss's series for K = 1, 2, 3.

Half of ε goes to the features (classical σ), half to the label; one pass; batches of 128, step
1e-4 and ℓ2 constant 5, for Adult 50, 2e-5 and 10, as published. The parameters stay in a ball of
radius 0.5 (Adult: 0.35), of which the paper says nothing.

Usage: python benchmarks/papers/iwp_figures.py synthetic|adult|truncation|draw --out FOLDER
           [--p 2] [--loss exponential] [--draws 100] [--first 0] [--adult FILE] [--svg FOLDER]
"""

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from picture import Line, Panel, save
from sklearn.datasets import make_classification

from ldpaudit.learners import IWPClassifier
from ldpaudit.mechanisms.gaussian import GaussianRR, classical_sigma
from ldpaudit.mechanisms.response import lambda_of_epsilon
from ldpaudit.models.iwp_losses import ExponentialLoss, LogLoss

ROWS, ADULT_ROWS, TEST_ROWS = 1_000_000, 535_087, 20_000
POINTS = 24
EPSILONS = {2: 2.0, 10: 5.0, 3: 2.0}
WAYS = ("SGD, real data", "SGD, noisy data", "IWP-SGD")
# The ridge keeps the parameters far inside the ball, at whose edge the exponential loss is noise.
LOSSES = {"exponential": ExponentialLoss(worst=math.inf), "log": LogLoss()}


def synthetic(p: int, seed: int) -> tuple[Any, Any]:
    X, y = make_classification(
        ROWS + TEST_ROWS, p, n_informative=2, n_redundant=0, n_clusters_per_class=1,
        random_state=seed,
    )  # fmt: skip
    low, high = X.min(axis=0), X.max(axis=0)
    order = np.random.default_rng(seed).permutation(len(X))
    return (2 * (X - low) / (high - low) - 1)[order], y[order].astype(np.int32)


def adult(path: Path) -> tuple[Any, Any]:
    table = pd.read_parquet(path)
    columns = ["age", "education_num", "hours_per_week"]
    X = table[columns].to_numpy(dtype=float)
    X = 2 * (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)) - 1
    y = table["income"].astype(str).str.contains(">50K").to_numpy().astype(np.int32)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order]


def released(X: Any, y: Any, p: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    half, radius = EPSILONS[p] / 2, float(np.sqrt(p))
    sigma = classical_sigma(half, 1e-5, 2 * radius)
    mechanism = GaussianRR((0, 1), lambda_of_epsilon(half, 2), radius, sigma, half, 1e-5)
    return mechanism, mechanism.release_features(X, rng, simulation=True), mechanism.sample(y, rng)


def path_of(noise: Any, X: Any, y: Any, loss: str, settings: dict[str, Any]) -> Any:
    """Return θ after each of some numbers of batches, shape (points, p)."""
    model = IWPClassifier(noise, loss=LOSSES[loss], fit_intercept=False, shuffle=False, **settings)
    thetas = []
    for start, stop in zip(*ends(len(X), settings["batch_size"]), strict=True):
        model.partial_fit(X[start:stop], y[start:stop], classes=[0, 1])
        thetas.append(model.theta_.copy())
    return np.array(thetas)


def ends(rows: int, batch: int) -> tuple[Any, Any]:
    stops = np.unique(np.geomspace(20, rows // batch, POINTS).astype(int)) * batch
    stops[-1] = rows
    return np.r_[0, stops[:-1]], stops


def scores(thetas: Any, X: Any, y: Any, loss: str) -> tuple[Any, Any]:
    """Return test risk and accuracy of each θ, both of shape (points,)."""
    margins = (2 * y - 1)[:, None] * (X @ thetas.T)
    return LOSSES[loss].derivative(margins, 0).mean(axis=0), (margins > 0).mean(axis=0)


def run(options: argparse.Namespace) -> None:
    real = options.part == "adult"
    p, loss = (3 if real else options.p), options.loss
    settings = {"ridge": 10.0, "batch_size": 50, "step": 2e-5, "radius": 0.35} if real else {
        "ridge": 5.0, "batch_size": 128, "step": 1e-4, "radius": 0.5}  # fmt: skip
    started, found, thetas = time.process_time(), [], []
    if real:
        whole, labels = adult(options.adult)
        held = len(whole) // 5
    for seed in range(options.first, options.first + options.draws):
        rng = np.random.default_rng([p, seed])
        if real:
            rows = rng.integers(held, len(whole), ADULT_ROWS)
            X, y, test, truth = whole[rows], labels[rows], whole[:held], labels[:held]
        else:
            X, y = synthetic(p, seed)
            X, y, test, truth = X[:ROWS], y[:ROWS], X[ROWS:], y[ROWS:]
        mechanism, noisy, z = released(X, y, p, rng)
        runs = ((None, X, y), (None, noisy, z), (mechanism, noisy, z))
        paths = [path_of(*one, loss, settings) for one in runs]
        thetas.append(paths)
        found.append([scores(path, test, truth, loss) for path in paths])
    risks, right = np.array(found).transpose(2, 0, 1, 3)
    batches = (ends(len(X), settings["batch_size"])[1] // settings["batch_size"]).tolist()
    kept: dict[str, Any] = {"p": p, "loss": loss, "part": options.part, "draws": options.draws}
    kept |= {"batches": batches, "risk": risks.tolist(), "accuracy": right.tolist()}
    if real:
        means = np.array(thetas).mean(axis=0)
        kept["mean_model"] = [scores(mean, test, truth, loss)[0].tolist() for mean in means]
    kept["seconds"] = time.process_time() - started
    name = f"{options.part}-{p}-{loss}-{options.first}.json"
    (options.out / name).write_text(json.dumps(kept))
    print(name, f"{kept['seconds']:.0f} s")


def truncation(options: argparse.Namespace) -> None:
    times = np.geomspace(0.02, 25, 30)
    kept = {str(k): [LOSSES["log"].bias(2 * t, 1.0, k) for t in times] for k in (1, 2, 3)}
    (options.out / "truncation.json").write_text(json.dumps({"t": times.tolist(), "bias": kept}))


def joined(out: Path, start: str) -> dict[str, Any]:
    """Return the runs of one figure as one."""
    parts = [json.loads(path.read_text()) for path in sorted(out.glob(f"{start}-*.json"))]
    whole = dict(parts[0])
    for key in ("risk", "accuracy"):
        whole[key] = np.concatenate([np.array(part[key]) for part in parts])
    whole["draws"] = len(whole["risk"])
    if "mean_model" in whole:
        whole["mean_model"] = np.mean([part["mean_model"] for part in parts], axis=0)
    return whole


FIGURES = {
    "1, p = 2": "synthetic-2-exponential",
    "1, p = 10": "synthetic-10-exponential",
    "5, p = 2": "synthetic-2-log",
    "5, p = 10": "synthetic-10-log",
    "2 and 4, Adult": "adult-3-exponential",
    "6 and 7, Adult": "adult-3-log",
}


def draw(options: argparse.Namespace) -> None:
    print("| figure | loss | draws | real data | noisy data | IWP-SGD | gap left |")
    print("|---|---|---:|---:|---:|---:|---:|")
    panels = []
    for figure, start in FIGURES.items():
        if not list(options.out.glob(f"{start}-*.json")):
            continue
        whole = joined(options.out, start)
        panels.append(panel(f"Figure {figure}", "test risk", whole["risk"].mean(axis=0), whole))
        print(row(figure, whole))
        if "mean_model" in whole:
            panels.append(
                panel(f"Figure {figure}: mean model", "test risk", whole["mean_model"], whole)
            )
            accuracy = whole["accuracy"].mean(axis=0)
            panels.append(panel(f"Figure {figure}: accuracy", "accuracy", accuracy, whole))
    extra = options.out / "truncation.json"
    if extra.exists():
        panels.append(truncation_panel(json.loads(extra.read_text())))
    if options.svg is not None:
        save(options.svg / "iwp_figures.svg", panels, columns=3)


def row(figure: str, whole: dict[str, Any]) -> str:
    last = whole["risk"][:, :, -1]
    mean, error = last.mean(axis=0), last.std(axis=0, ddof=1) / np.sqrt(len(last))
    cells = [f"{m:.5f} ± {e:.5f}" for m, e in zip(mean, error, strict=True)]
    gap = (mean[2] - mean[0]) / (mean[1] - mean[0])
    text = f"| {figure} | {whole['loss']} | {len(last)} | " + " | ".join(cells) + f" | {gap:.3f} |"
    if "mean_model" in whole:
        end = whole["mean_model"][:, -1]
        right = whole["accuracy"][:, :, -1].mean(axis=0)
        text += f"\n| … mean model | | | {end[0]:.5f} | {end[1]:.5f} | {end[2]:.5f} | "
        text += f"{(end[2] - end[0]) / (end[1] - end[0]):.3f} |"
        text += "\n| … accuracy | | | " + " | ".join(f"{100 * r:.2f} %" for r in right) + " | |"
    return text


def panel(title: str, what: str, curves: Any, whole: dict[str, Any]) -> Panel:
    lines = [Line(way, whole["batches"], curve) for way, curve in zip(WAYS, curves, strict=True)]
    return Panel(title, "batches", what, lines)


def truncation_panel(kept: dict[str, Any]) -> Panel:
    lines = [Line(f"K = {k}", kept["t"], bias) for k, bias in kept["bias"].items()]
    return Panel("Figure 3: bias of the log loss's series", "t = σ²‖θ‖²/2", "bias", lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("synthetic", "adult", "truncation", "draw"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--p", type=int, choices=(2, 10), default=2)
    parser.add_argument("--loss", choices=tuple(LOSSES), default="exponential")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--adult", type=Path)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    parts = {"truncation": truncation, "draw": draw}
    parts.get(options.part, run)(options)


if __name__ == "__main__":
    main()
