"""How often ``audit_model`` accuses honest training, and finds training on labels as they are.

Run: python benchmarks/models.py [--rows 10000] [--leaking 100] [--honest 200]

Half of the 10,000 labels are drawn by coin; for logistic regression one person's, in each of 30
runs. The claim is the ε of the noise, or 1 where labels are used as they are. With --predictions
N ``audit_predictions`` instead, N times each: half of the labels are canaries, drawn by the chance
that features give. Prints Markdown.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
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


def drawn(rows: int, draw: int, epsilon: float | None) -> tuple[Any, Any, Any, Any]:
    """Return randomness, features, the chance of label 1, and labels drawn with it."""
    rng = np.random.default_rng([draw, int(10 * (epsilon or 0))])
    features = rng.normal(size=(rows, 6))
    chance = 1 / (1 + np.exp(-features[:, 0] - features[:, 1]))
    return rng, features, chance, (rng.random(rows) < chance).astype(int)


def noisy(labels: Any, epsilon: float | None, rng: np.random.Generator) -> Any:
    """Return labels after randomized response; None: as they are."""
    if epsilon is None:
        return labels
    kept = rng.random(len(labels)) < 1 / (1 + np.exp(-epsilon))
    return np.where(kept, labels, 1 - labels)


def audited(name: str, epsilon: float | None, rows: int, draws: int) -> Iterator[Any]:
    """Yield the audits of a model that is trained on noisy labels; None: as they are."""
    for draw in range(draws):
        rng, features, _, truth = drawn(rows, draw, epsilon)

        def fit(table: Any, labels: Any, draw: int = draw, rng: Any = rng) -> Any:
            return MODELS[name](draw).fit(table, noisy(labels, epsilon, rng))

        alone = name not in REMEMBER
        runs = 30 if alone else 1
        yield ldpaudit.audit_model(
            fit, features, truth, epsilon or 1.0, runs=runs, one_person=alone, seed=draw
        )


def predicted(name: str, epsilon: float | None, rows: int, draws: int) -> Iterator[Any]:
    """Yield the audits of the predictions of such a model for its training rows."""
    for draw in range(draws):
        rng, features, chance, truth = drawn(rows, draw, epsilon)
        model = MODELS[name](draw).fit(features, noisy(truth, epsilon, rng))
        canaries = np.c_[1 - chance, chance]
        canaries[rows // 2 :] = np.nan
        train = pd.DataFrame(features, columns=list("abcdef")).assign(label=truth)
        yield ldpaudit.audit_predictions(
            model.predict_proba(features),
            train,
            epsilon=epsilon or 1.0,
            canaries=canaries,
            threads=1,
            seed=draw,
        )


def main() -> None:
    ask = argparse.ArgumentParser()
    ask.add_argument("--rows", type=int, default=10_000)
    ask.add_argument("--leaking", type=int, default=100)
    ask.add_argument("--honest", type=int, default=200)
    ask.add_argument("--predictions", type=int, default=0)
    asked = ask.parse_args()
    columns = ["labels", "model", "audits", "fail", "pass", "inconclusive", "mean bound on ε"]
    columns += ["added by the predictions"] if asked.predictions else []
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    cases = [(None, name, asked.leaking) for name in MODELS]
    each = -(-asked.honest // (len(EPSILONS) * len(MODELS)))
    cases += [(epsilon, name, each) for epsilon in EPSILONS for name in MODELS]
    for epsilon, name, draws in cases:
        if asked.predictions:
            found = list(predicted(name, epsilon, asked.rows, asked.predictions))
        else:
            found = list(audited(name, epsilon, asked.rows, draws))
        counts = [sum(f.verdict == v for f in found) for v in ("fail", "pass", "inconclusive")]
        kind = "predictions.epsilon_lower" if asked.predictions else "model.epsilon"
        bound = np.mean([one[kind].value for one in found])
        labels = "as they are, claim ε = 1" if epsilon is None else f"noisy, ε = {epsilon:g}"
        numbers = " | ".join(map(str, [len(found), *counts, f"{bound:.2f}"]))
        if asked.predictions:
            gain = np.mean([one["predictions.gain"].value for one in found])
            numbers += f" | {100 * gain:.1f} points"
        print(f"| {labels} | {name} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
