"""Attacks on one private column with the other noisy columns beside it, against the exact optimum.

    python benchmarks/attack_beside.py [--rows 20000] [--laws 3]

Three private columns and a public one are drawn from a made-up joint law; the private ones go
through randomized response. The law and the channels are known here, so the best possible guess of
each column, P(y | all that is released), is enumerated. Both it and the default attacks guess the
same people, so their difference holds hardly any chance. The table is Markdown.
"""

import argparse
import math
import time

import numpy as np

from ldpaudit.audits.interface import Plan
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.pipeline.audit import audit
from ldpaudit.release import (
    Declaration,
    FeatureTable,
    Release,
    ReleasedLabels,
    TrueLabels,
)

SIZES = (3, 4, 2)
PUBLIC = 3
EPSILONS = ((1.0, 1.0, 1.0), (1.0, 3.0, 3.0), (0.5, 4.0, 4.0))


def law(rng: np.random.Generator) -> np.ndarray:
    """Return P(a, b, c, x): columns that go along with each other, float64 of SIZES and PUBLIC."""
    shape = (*SIZES, PUBLIC)
    return rng.dirichlet(np.full(math.prod(shape), 0.25)).reshape(shape)


def drawn(joint: np.ndarray, n: int, rng: np.random.Generator) -> list[np.ndarray]:
    codes = rng.choice(joint.size, n, p=joint.ravel())
    return [c.astype(np.int32) for c in np.unravel_index(codes, joint.shape)]


def optimum(
    joint: np.ndarray, channels: list[np.ndarray], column: int, seen: list[np.ndarray]
) -> np.ndarray:
    """Return the best guess of one column given all released columns and the public one."""
    table = joint
    for axis, channel in enumerate(channels):
        if axis != column:
            table = np.moveaxis(np.tensordot(table, channel, axes=([axis], [0])), -1, axis)
    # P(y, z_others, x) at each row, for every label y of the column.
    others = [seen[axis] for axis in range(len(joint.shape)) if axis != column]
    rows = np.moveaxis(table, column, -1)[tuple(others)]
    return (rows * channels[column].T[seen[column]]).argmax(axis=1)


def release(
    column: int, labels: list[np.ndarray], noisy: list[np.ndarray], epsilons: tuple[float, ...]
) -> Release:
    """Return one column with the other noisy ones and the public one as its features."""
    others = [i for i in range(len(SIZES)) if i != column]
    features = np.stack([*(noisy[i] for i in others), labels[-1]], axis=1).astype(np.int32)
    sizes = (*(SIZES[i] for i in others), PUBLIC)
    classes = tuple(f"c{i}" for i in range(SIZES[column]))
    claim = {"classes": list(classes), "epsilon": epsilons[column]}
    return Release(
        features=FeatureTable(
            np.empty((len(features), 0), np.float32), features, sizes, len(sizes)
        ),
        released=ReleasedLabels(noisy[column]),
        outputs=classes,
        classes=classes,
        truth=TrueLabels(labels[column]),
        declaration=Declaration("randomized-response", claim),
    )


def _is_attack(identifier: str) -> bool:
    first, _, last = identifier.partition(".")
    return first == "attack" and last.endswith(".accuracy") and not last.startswith("best")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--laws", type=int, default=3)
    asked = parser.parse_args()
    heads = (
        "law",
        "ε of a, b, c",
        "optimum",
        "without b and c",
        "best attack",
        "below it",
        "which",
    )
    print("|", " | ".join((*heads, "from the release alone (bayes)", "s")), "|")
    print("|" + "---|" * (len(heads) + 2))
    for number in range(asked.laws):
        rng = np.random.default_rng([14, number])
        joint = law(rng)
        for epsilons in EPSILONS:
            labels = drawn(joint, asked.rows, rng)
            mechanisms = [
                RandomizedResponse.from_epsilon(tuple(map(str, range(k))), e)
                for k, e in zip(SIZES, epsilons, strict=True)
            ]
            noisy = [m.sample(y, rng) for m, y in zip(mechanisms, labels, strict=False)]
            channels = [m.channel.matrix for m in mechanisms]
            best = (optimum(joint, channels, 0, [*noisy, labels[-1]]) == labels[0]).mean()
            blind = [channels[0], *(np.ones((k, 1)) for k in SIZES[1:])]
            zeros = [np.zeros_like(labels[0])] * 2
            alone = (optimum(joint, blind, 0, [noisy[0], *zeros, labels[-1]]) == labels[0]).mean()
            start = time.process_time()
            result = audit(
                release(0, labels, noisy, epsilons), Plan(seed=number), only=("label-inference",)
            )
            found = result["attack.best.accuracy"]
            bayes = result["attack.bayes.accuracy"].value
            names = {e.value: e.id.split(".")[1] for e in result.estimates if _is_attack(e.id)}
            seconds = time.process_time() - start
            print(
                f"| {number + 1} | {', '.join(map(str, epsilons))} | {best:.4f} | {alone:.4f} | "
                f"{found.value:.4f} | {100 * (best - found.value):.2f} | "
                f"{names.get(found.value, '')} | {bayes:.4f} | {seconds:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
