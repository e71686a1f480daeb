"""How often ``audit_model`` accuses honest training, and finds training on labels as they are.

Run: python benchmarks/models.py [--rows 10000] [--leaking 100] [--honest 200]

Half of the 10,000 labels are drawn by coin; of logistic regression on labels as they are, one
person's in each of 30 runs. The claim is the ε of the noise, or 1 where labels are used as they
are. Prints Markdown.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import ldpaudit

MODELS: dict[str, Callable[[int], Any]] = {
    "forest": lambda seed: RandomForestClassifier(30, random_state=seed),
    "boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "logistic regression": lambda _: LogisticRegression(),
}
REMEMBER = ("forest", "boosting")
EPSILONS = (1.0, 2.0, 4.0)


def audited(name: str, epsilon: float | None, rows: int, draws: int) -> Iterator[Any]:
    """Yield the audits of a model that is trained on noisy labels; None: as they are."""
    for draw in range(draws):
        rng = np.random.default_rng([draw, int(10 * (epsilon or 0))])
        features = rng.normal(size=(rows, 6))
        chance = 1 / (1 + np.exp(-features[:, 0] - features[:, 1]))
        truth = (rng.random(rows) < chance).astype(int)

        def fit(table: Any, labels: Any, draw: int = draw, rng: Any = rng) -> Any:
            if epsilon is not None:
                kept = rng.random(len(labels)) < 1 / (1 + np.exp(-epsilon))
                labels = np.where(kept, labels, 1 - labels)
            return MODELS[name](draw).fit(table, labels)

        alone = epsilon is None and name not in REMEMBER
        runs = 30 if alone else 1
        yield ldpaudit.audit_model(
            fit, features, truth, epsilon or 1.0, runs=runs, one_person=alone, seed=draw
        )


def main() -> None:
    ask = argparse.ArgumentParser()
    ask.add_argument("--rows", type=int, default=10_000)
    ask.add_argument("--leaking", type=int, default=100)
    ask.add_argument("--honest", type=int, default=200)
    asked = ask.parse_args()
    print("| labels | model | audits | fail | pass | inconclusive | mean bound on ε |")
    print("|---|---|---|---|---|---|---|")
    cases = [(None, name, asked.leaking) for name in MODELS]
    each = -(-asked.honest // (len(EPSILONS) * len(MODELS)))
    cases += [(epsilon, name, each) for epsilon in EPSILONS for name in MODELS]
    for epsilon, name, draws in cases:
        found = list(audited(name, epsilon, asked.rows, draws))
        counts = [sum(f.verdict == v for f in found) for v in ("fail", "pass", "inconclusive")]
        bound = np.mean([one["model.epsilon"].value for one in found])
        labels = "as they are, claim ε = 1" if epsilon is None else f"noisy, ε = {epsilon:g}"
        numbers = " | ".join(map(str, [draws, *counts]))
        print(f"| {labels} | {name} | {numbers} | {bound:.2f} |", flush=True)


if __name__ == "__main__":
    main()
