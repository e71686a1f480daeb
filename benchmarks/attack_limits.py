"""How near to the optimum one can come, on average, from a release and true labels of others.

The exact P(label | features) of a table with finite cells is itself drawn: a cell of n people has
frequencies that are multiples of 1/n. Here the table's people are drawn again from a smooth
P₀(label | features), each cell's frequencies with them; then labels are drawn from those
frequencies and randomized. The attacker knows P₀ and the channel exactly and uses Bayes' rule, so
on average over populations drawn like this nobody does better; on one of them somebody may. It is
told nothing else, the released labels of all, or the *true* labels of everybody else, which is
more than any attacker has.

P₀ is the table's own frequencies drawn towards a gradient-boosted model of the true labels by 8 or
32 rows. With more than two classes each class's posterior mean comes from its own count, which
is nearly exact where frequencies are small.

Usage: python benchmarks/attack_limits.py DATA_FOLDER [--seeds N]
"""

import argparse
from pathlib import Path

import numpy as np
from exact_advantage import TASKS, Task, load
from scipy.special import gammaln
from sklearn.ensemble import HistGradientBoostingClassifier

from ldpaudit.mechanisms import RandomizedResponse

CASES = (
    ("fertility (morekids)", (0.5, 1.0, 2.0)),
    ("fertility (weeks worked)", (4.0, 6.0, 8.0)),
)
PULLS = (8.0, 32.0)
KNOWLEDGE = ("nothing else", "released labels of all", "true labels of all others")


def smooth(task: Task) -> np.ndarray:
    """Return P(label | features) of each cell as learnt from the true labels of other cells."""
    table = task.features.categorical[task.cells.representatives].astype(float)
    folds = np.random.default_rng(0).integers(0, 10, len(table))
    found = np.full(task.eta.shape, 1e-6)
    classes = task.eta.shape[1]
    for fold in range(10):
        cells, labels = np.nonzero(task.eta * (folds != fold)[:, None])
        model = HistGradientBoostingClassifier(
            learning_rate=0.06,
            max_iter=150 if classes == 2 else 40,
            max_leaf_nodes=31 if classes == 2 else 15,
            early_stopping=False,
            l2_regularization=5.0,
            random_state=0,
        )
        model.fit(table[cells], labels, (task.weights[:, None] * task.eta)[cells, labels])
        asked = np.flatnonzero(folds == fold)
        found[np.ix_(asked, model.classes_)] += model.predict_proba(table[asked])
    return found / found.sum(axis=1, keepdims=True)


def mean_frequency(n: int, p: float, hits: np.ndarray, tries: int, rate: tuple) -> np.ndarray:
    """Return E[N/n | hits] for N ~ Bin(n, p) and hits ~ Bin(tries, a + b N/n), rate = (a, b)."""
    reach = 8 * np.sqrt(n * p + 1) + 10
    number = np.arange(max(0, int(n * p - reach)), min(n, int(n * p + reach)) + 1)
    p = np.clip(p, 1e-12, 1 - 1e-12)
    prior = -gammaln(number + 1) - gammaln(n - number + 1)
    prior = prior + number * np.log(p) + (n - number) * np.log1p(-p)
    chance = np.clip(rate[0] + rate[1] * number / n, 1e-300, 1 - 1e-16)
    logs = prior + hits[:, None] * np.log(chance) + (tries - hits[:, None]) * np.log1p(-chance)
    weight = np.exp(logs - logs.max(axis=1, keepdims=True))
    return weight @ number / weight.sum(axis=1) / n


def gaps(task: Task, prior: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Return by how much each attacker of KNOWLEDGE misses the optimum, as a share of rows."""
    channel = RandomizedResponse.from_epsilon(task.classes, epsilon).channel.matrix
    sizes, k = task.weights.astype(int), len(task.classes)
    rate = (channel[0, 1], channel[0, 0] - channel[0, 1])
    lost = np.zeros(3)
    for n, before in zip(sizes, prior, strict=True):
        eta = rng.multinomial(n, before) / n
        truth = rng.multinomial(n, eta)
        pairs = np.stack([rng.multinomial(count, channel[y]) for y, count in enumerate(truth)])
        released = pairs.sum(axis=0)
        joint = eta[:, None] * channel
        # Given x and the released label, the chance that each label is right.
        right = joint / joint.sum(axis=0)
        best = (released * right.max(axis=0)).sum()
        blind = (before[:, None] * channel).argmax(axis=0)
        lost[0] += best - (released * right[blind, np.arange(k)]).sum()
        for which, counts, form in ((1, released, rate), (2, truth, (0.0, 1.0))):
            seen = np.stack([counts, np.maximum(counts - 1, 0)], axis=1)
            means = np.array([mean_frequency(n, before[y], seen[y], n - 1, form) for y in range(k)])
            for own in np.flatnonzero(counts):
                # The row's own label is no evidence of its cell.
                known = means[:, 0].copy()
                known[own] = means[own, 1]
                if which == 1:
                    guess = (known * channel[:, own]).argmax()
                    lost[1] -= released[own] * right[guess, own]
                    continue
                guesses = (known[:, None] * channel).argmax(axis=0)
                # Who is released as z, with the true label `own`, is guessed right or not.
                lost[2] -= (pairs[own] * (guesses == own)).sum()
        lost[1:] += best
    return lost / sizes.sum()


def main() -> None:
    parser = argparse.ArgumentParser(description="What an attack can reach on sparse cells.")
    parser.add_argument("folder", type=Path, help="the folder of public datasets")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    print(f"| data (label) | ε | pull | {' | '.join(KNOWLEDGE)} |\n|---|---|---|---|---|---|")
    for name, epsilons in CASES:
        task = load(options.folder, *TASKS[name])
        model, rows = smooth(task), task.weights[:, None]
        for epsilon in epsilons:
            for pull in PULLS:
                prior = (rows * task.eta + pull * model) / (rows + pull)
                runs = [
                    gaps(task, prior, epsilon, np.random.default_rng(seed))
                    for seed in range(1, options.seeds + 1)
                ]
                mean, spread = 100 * np.mean(runs, axis=0), 100 * np.std(runs, axis=0)
                cells = [f"{m:.2f} ± {s:.2f}" for m, s in zip(mean, spread, strict=True)]
                print(f"| {name} | {epsilon:g} | {pull:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
