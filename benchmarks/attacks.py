"""How near label-inference attacks come to what is possible, and how honest their intervals are.

    python benchmarks/attacks.py optimum [DATA]      the best attack against the exact optimum
    python benchmarks/attacks.py small               the same, on small releases
    python benchmarks/attacks.py published           beside the attack of Wu et al., same draws
    python benchmarks/attacks.py peers [--install-peers] [--folder FOLDER]
                                                     beside Anonymeter, SDMetrics, PrivacyGuard
    python benchmarks/attacks.py coverage            intervals over 500 simulated releases

Prints Markdown. DATA is the folder with military.parquet and fertility.parquet; the peers
live in environments of their own, which --install-peers makes in FOLDER.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from exact_advantage import SEEDS, TASKS, load
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from ldpaudit.attacks import Knowledge, create_attack
from ldpaudit.attacks.interface import as_seen_by, without_truth
from ldpaudit.attacks.scoring import ACCURACY, lower_bound, score_fold, upper_bound
from ldpaudit.audits.label_inference.estimates import best_parts
from ldpaudit.audits.label_inference.runs import AttackRun
from ldpaudit.estimators.advantage import advantage_ceiling
from ldpaudit.estimators.intervals.ranking import auc
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import FeatureTable, Release, ReleasedLabels, TrueLabels

EPSILONS = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0)
PUBLIC = ("released-label", "bayes", "bayes-whole-release")
"""Attacks that see no true label."""
PUBLISHED = {0.1: -0.244, 0.5: -0.146, 1.0: -0.025, 2.0: 0.118, 4.0: 0.218}
"""Advantages of the attack of Wu et al. (2023) in its own simulation."""
PARTS = ("optimum", "small", "published", "peers", "coverage")
PEERS = {
    "attacks": ("anonymeter", "sdmetrics"),
    "privacyguard": ("privacyguard-platform", "torch<2.14"),
}
"""Other evaluators, by the environment in which they are installed."""
_PEER = Path(__file__).parent / "attack_peers.py"


def numeric(values: np.ndarray) -> FeatureTable:
    none = np.zeros((len(values), 0), dtype=np.int32)
    return FeatureTable(values.astype(np.float32), none, (), values.shape[1])


def released(
    features: FeatureTable, truth: np.ndarray, epsilon: float, k: int, rng: np.random.Generator
) -> tuple[Release, RandomizedResponse]:
    mechanism = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon)
    codes = truth.astype(np.int32)
    labels = ReleasedLabels(mechanism.sample(codes, rng))
    classes = mechanism.classes
    return Release(features, labels, classes, classes, TrueLabels(codes)), mechanism


def cross_fitted(
    release: Release, mechanism: RandomizedResponse, names: Sequence[str], seed: int
) -> dict[str, np.ndarray]:
    """Return each attack's posterior for every row, fitted on the other half."""
    rng = np.random.default_rng(seed)
    halves = rng.permutation(len(release)) % 2
    found = {
        name: np.empty((len(release), len(release.classes)), dtype=np.float32) for name in names
    }
    for half in (0, 1):
        fitting, held = (release.take(np.flatnonzero(halves == h)) for h in (half, 1 - half))
        knowledge = Knowledge(mechanism.channel, seed=seed, claim=mechanism)
        for name in names:
            attack = create_attack(name, knowledge)
            attack.fit(as_seen_by(attack, fitting), rng)
            found[name][halves != half] = attack.posterior(without_truth(held))
    return found


@dataclass(frozen=True)
class Optimum:
    """A population of which P(label | features) is known exactly, and draws of it."""

    name: str
    features: FeatureTable
    eta: np.ndarray
    """For each row."""

    def draw(self, epsilon: float, seed: int) -> tuple[Release, RandomizedResponse]:
        """Return a release of labels drawn from the exact probabilities."""
        rng = np.random.default_rng(seed)
        above = rng.random((len(self.eta), 1)) > np.cumsum(self.eta, axis=1)[:, :-1]
        return released(self.features, above.sum(axis=1), epsilon, self.eta.shape[1], rng)


def populations(folder: Path | None) -> Iterator[Optimum]:
    rng = np.random.default_rng(0)
    for columns, shift in ((3, 0.5), (18, 0.25)):
        labels = rng.random(100_000) < 0.4
        values = rng.normal(size=(100_000, columns)) + shift * (2 * labels[:, None] - 1)
        eta = expit(2 * shift * values.sum(axis=1) + np.log(0.4 / 0.6))
        name = f"Gaussian mixture, {columns} columns"
        yield Optimum(name, numeric(values), np.stack([1 - eta, eta], axis=1))
    means = rng.normal(size=(4, 5))
    labels = rng.integers(0, 4, 100_000)
    values = rng.normal(size=(100_000, 5)) + means[labels]
    logs = -((values[:, None, :] - means) ** 2).sum(axis=2) / 2
    eta = np.exp(logs - logs.max(axis=1, keepdims=True))
    name = "Gaussian mixture, 4 classes"
    yield Optimum(name, numeric(values), eta / eta.sum(axis=1, keepdims=True))
    for name, spec in TASKS.items() if folder else ():
        task = load(folder, *spec)
        yield Optimum(name, task.features, task.eta[task.cells.members])


def optimum(folder: Path | None, epsilons: Sequence[float], seeds: Sequence[int]) -> None:
    """Print chances of being right given what is released, by the exact probabilities."""
    columns = " | ".join(f"`{name}`" for name in (*PUBLIC[1:], "knn", "oracle"))
    print(f"| population | rows | ε | optimum | {columns} | best public gap, pp |")
    print("|---|---|---|---|---|---|---|---|---|")
    for population in populations(folder):
        for epsilon in epsilons:
            shares: dict[str, list[float]] = {}
            best = []
            for seed in seeds:
                release, mechanism = population.draw(epsilon, seed)
                exactly = population.eta * mechanism.channel.matrix.T[release.released]
                exactly /= exactly.sum(axis=1, keepdims=True)
                best.append(np.mean(exactly.max(axis=1)))
                names = [*PUBLIC, "oracle"]
                names += ["knn"] if len(release) <= 100_000 and seed == seeds[0] else []
                for name, posterior in cross_fitted(release, mechanism, names, seed).items():
                    guess = posterior.argmax(axis=1)[:, None]
                    right = np.take_along_axis(exactly, guess, axis=1).mean()
                    shares.setdefault(name, []).append(float(right))
            mean = {name: float(np.mean(values)) for name, values in shares.items()}
            public = max(value for name, value in mean.items() if name != "oracle")
            knn = f"{mean['knn']:.4f}" if "knn" in mean else "–"
            learnt = " | ".join(f"{mean[name]:.4f}" for name in PUBLIC[1:])
            print(
                f"| {population.name} | {len(release):,} | {epsilon:g} | {np.mean(best):.4f} | "
                f"{learnt} | {knn} | {mean['oracle']:.4f} | "
                f"{100 * max(np.mean(best) - public, 0.0):.2f} |",
                flush=True,
            )


def small(runs: int) -> None:
    """Print by how many points attacks on small releases miss the optimum, means over draws."""
    names = (*PUBLIC, "oracle")
    print(f"| population | rows | ε | {' | '.join(f'`{name}`' for name in names)} |")
    print("|---|---|---|---|---|---|---|")
    for population in populations(None):
        for rows in (1_000, 4_000):
            for epsilon in (0.5, 1.0, 2.0):
                lost = dict.fromkeys(names, 0.0)
                for seed in range(runs):
                    release, mechanism = population.draw(epsilon, seed)
                    chosen = np.random.default_rng([seed, 1]).choice(len(release), rows, False)
                    release = release.take(chosen)
                    exactly = population.eta[chosen] * mechanism.channel.matrix.T[release.released]
                    exactly /= exactly.sum(axis=1, keepdims=True)
                    for name, posterior in cross_fitted(release, mechanism, names, seed).items():
                        guess = posterior.argmax(axis=1)[:, None]
                        right = np.take_along_axis(exactly, guess, axis=1)[:, 0]
                        lost[name] += float((exactly.max(axis=1) - right).mean()) / runs
                missed = " | ".join(f"{100 * value:.2f}" for value in lost.values())
                print(f"| {population.name} | {rows:,} | {epsilon:g} | {missed} |", flush=True)


def published(runs: int) -> None:
    """Two unit-vector Gaussian classes, d = N = 100, σ = 1 (Wu et al. 2023)."""
    n = d = 100
    means = np.zeros((2, d))
    means[0, 0] = means[1, 1] = 1.0
    print("| ε | published | its attack here | `released-label` | `bayes` | optimum | ceiling |")
    print("|---|---|---|---|---|---|---|")
    for epsilon, reported in PUBLISHED.items():
        gains: dict[str, list[float]] = {}
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            values = means[rng.integers(0, 2, n)] + rng.normal(size=(n, d))
            eta = expit(values @ (means[1] - means[0]))
            truth = rng.random(n) < eta
            release, mechanism = released(numeric(values), truth, epsilon, 2, rng)
            both = np.stack([1 - eta, eta], axis=1)
            guesses = {"optimum": (both * mechanism.channel.matrix.T[release.released]).argmax(1)}
            theirs = LogisticRegression(max_iter=500).fit(values, release.released)
            guesses["theirs"] = theirs.predict(values)
            # In sample, as published: the attacker has one release, and guesses its rows.
            for name in ("released-label", "bayes"):
                attack = create_attack(name, Knowledge(mechanism.channel, seed=seed))
                attack.fit(without_truth(release), rng)
                guesses[name] = attack.posterior(without_truth(release)).argmax(axis=1)
            without = np.maximum(eta, 1 - eta).mean()
            for name, guess in guesses.items():
                # The chance of being right given what is released, not one draw of it.
                right = np.mean(guess == release.truth)
                gains.setdefault(name, []).append(float(right - without))
        mean = {name: np.mean(values) for name, values in gains.items()}
        print(
            f"| {epsilon:g} | {reported:+.3f} | {mean['theirs']:+.4f} | "
            f"{mean['released-label']:+.4f} | {mean['bayes']:+.4f} | {mean['optimum']:+.4f} | "
            f"{advantage_ceiling(epsilon, 2):.4f} |",
            flush=True,
        )
    error = np.std(gains["bayes"]) / np.sqrt(runs)
    print(f"\n{runs} draws; standard error of each mean at most about {max(error, 0.006):.3f}.")


def peers(folder: Path, install: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for tool, packages in PEERS.items():
        python = _python(folder, tool)
        if install and not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder / tool)], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
    print("| ε | attack | accuracy | AUC | seconds |\n|---|---|---|---|---|")
    for epsilon in (0.5, 2.0):
        rng = np.random.default_rng(7)
        truth = rng.random(10_000) < 0.5
        values = rng.normal(size=(10_000, 4)) + 0.35 * (2 * truth[:, None] - 1)
        release, mechanism = released(numeric(values), truth, epsilon, 2, rng)
        for name in ("released-label", "bayes", "classifier", "knn"):
            start = time.perf_counter()
            posterior = cross_fitted(release, mechanism, [name], 1)[name]
            right = np.mean(posterior.argmax(axis=1) == release.truth)
            area = auc(posterior[truth, 1], posterior[~truth, 1])
            seconds = time.perf_counter() - start
            row = f"| {epsilon:g} | `{name}` | {right:.3f} | {area:.3f} | {seconds:.1f} |"
            print(row, flush=True)
        _print_game(epsilon, release, mechanism)
        for tool in PEERS:
            if _python(folder, tool).exists():
                _print_peers(folder, tool, epsilon, release)


def _python(folder: Path, tool: str) -> Path:
    return folder / tool / "bin" / "python"


def _print_game(epsilon: float, release: Release, mechanism: RandomizedResponse) -> None:
    """Print what `bayes` makes of true labels against ones re-drawn given the features."""
    start = time.perf_counter()
    posterior = cross_fitted(release, mechanism, ["bayes"], 1)["bayes"][:, 1].astype(np.float64)
    sign = np.where(np.asarray(release.released) == 1, epsilon, -epsilon)
    prior = expit(logit(np.clip(posterior, 1e-7, 1 - 1e-7)) - sign)
    rng = np.random.default_rng(1)
    areas, rights = [], []
    for _ in range(20):
        true = rng.random(len(prior)) < 0.5
        shown = np.where(true, release.truth, rng.random(len(prior)) < prior)
        ratio = np.where(shown == 1, posterior / prior, (1 - posterior) / (1 - prior))
        areas.append(auc(ratio[true], ratio[~true]))
        rights.append(np.mean((ratio > 1) == true))
    seconds = time.perf_counter() - start
    words = "`bayes`, true against re-drawn label"
    numbers = f"{np.mean(rights):.3f} | {np.mean(areas):.3f} | {seconds:.1f}"
    print(f"| {epsilon:g} | {words} | {numbers} |", flush=True)


def _print_peers(folder: Path, tool: str, epsilon: float, release: Release) -> None:
    frame = pd.DataFrame(release.features.numeric, columns=["a", "b", "c", "d"])
    frame.assign(label=release.truth).to_csv(folder / "original.csv", index=False)
    frame.assign(label=release.released).to_csv(folder / "released.csv", index=False)
    ran = subprocess.run(
        [str(_python(folder, tool)), str(_PEER), str(folder), tool, str(epsilon)],
        check=False,
        capture_output=True,
        text=True,
    )
    if ran.returncode:
        print(f"| {epsilon:g} | peers failed | – | – | – |\n\n{ran.stderr[-500:]}")
        return
    for name, (share, area, seconds) in json.loads(ran.stdout).items():
        own = "–" if area is None else f"{area:.3f}"
        print(f"| {epsilon:g} | {name} | {share:.3f} | {own} | {seconds:.1f} |", flush=True)


def coverage(releases: int) -> None:
    levels = (0.8, 0.95)
    held = {level: np.zeros(2) for level in levels}
    widths = dict.fromkeys(levels, 0.0)
    for seed in range(releases):
        runs, true = simulated(1.0, seed)
        folds = next(run.folds for run in runs if run.name == "bayes")
        for level in levels:
            low, high = (b(folds, ACCURACY, (1 - level) / 2) for b in (lower_bound, upper_bound))
            best = next(iter(best_parts(runs, level)))
            held[level] += (
                low <= true["bayes"] <= high,
                best.low <= max(true.values()) <= best.high,
            )
            widths[level] += (best.high - best.low) / 2 / releases
    print("| level | `bayes` covered | `attack.best` covered | half width of best |")
    print("|---|---|---|---|")
    for level in levels:
        own, best = held[level] / releases
        print(f"| {level:g} | {own:.3f} | {best:.3f} | {widths[level]:.3f} |")


def simulated(epsilon: float, seed: int, n: int = 300, fresh: int = 20_000):
    """Return runs of three attacks on a small release, and their accuracy on fresh rows."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n + fresh) < 0.4
    values = rng.normal(size=(n + fresh, 3)) + 0.5 * (2 * truth[:, None] - 1)
    everything, mechanism = released(numeric(values), truth, epsilon, 2, rng)
    release = everything.take(np.arange(n))
    more = everything.take(np.arange(n, n + fresh))
    runs: dict[str, list] = {}
    true: dict[str, float] = {}
    for half in (0, 1):
        rows = np.arange(n) % 2
        fitting, held = (release.take(np.flatnonzero(rows == h)) for h in (half, 1 - half))
        knowledge = Knowledge(mechanism.channel, seed=seed)
        for name in ("released-label", "bayes", "oracle"):
            attack = create_attack(name, knowledge).fit(fitting, rng)
            folds = [
                score_fold(part.truth, attack.posterior(part), None, rate_alpha=0.05, rng=rng)
                for part in (held, more)
            ]
            runs.setdefault(name, []).append(folds[0])
            true[name] = true.get(name, 0.0) + ACCURACY.value(folds[1]) / 2
    return [AttackRun(name, name, tuple(folds)) for name, folds in runs.items()], true


def main() -> None:
    parser = argparse.ArgumentParser(description="Attacks against what is possible.")
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("data", type=Path, nargs="?", help="the folder of public datasets")
    parser.add_argument("--install-peers", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "peers")
    parser.add_argument("--runs", type=int, help="draws, releases or rows, where not the default")
    options = parser.parse_args()
    if options.part == "optimum":
        optimum(options.data, EPSILONS, SEEDS[: options.runs or 1])
    elif options.part == "small":
        small(options.runs or 6)
    elif options.part == "published":
        published(options.runs or 60)
    elif options.part == "peers":
        peers(options.folder, options.install_peers)
    else:
        coverage(options.runs or 500)


if __name__ == "__main__":
    main()
