"""The presets of policies: how often honest releases fail, and whether a planted leak is found.

    python benchmarks/presets.py [--draws 40] [--rows 4000] [--audits mechanism …]

Prints a Markdown table: for each release and preset the verdicts of all draws. Of honest releases
at most a share of 1 − confidence may fail: 5 % under ldpaudit:default and ldpaudit:research, 1 %
under ldpaudit:strict. With ``--audits`` left empty every audit runs (some 10 s for each draw).
"""

import argparse
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pandas as pd

import ldpaudit
from ldpaudit.judging.policy import PRESETS, load_policy
from ldpaudit.mechanisms import RandomizedResponse

Release = tuple[pd.DataFrame, np.ndarray]
CLAIMED = {"ε = 0.5": 0.5, "ε = 1": 1.0, "ε = 3": 3.0}
AUDITS = ["assumptions", "mechanism", "power", "seeds"]
FAULTS = ("honest", "made at ε + 0.7", "10 % in the clear", "an id column")


def released(fault: str, epsilon: float, rows: int, classes: int, seed: int) -> Release:
    """Make a release that claims ``epsilon``; return it with the true labels."""
    rng = np.random.default_rng([seed, rows, classes, *fault.encode()])
    truth = rng.choice(classes, rows, p=np.arange(classes, 0, -1) / np.arange(1, classes + 1).sum())
    x = rng.normal(truth[:, None] * [0.8, 0.3], 1.0, (rows, 2)).round(3)
    frame = pd.DataFrame({"age": x[:, 0], "income": x[:, 1], "region": rng.integers(0, 9, rows)})
    made = epsilon + 0.7 if fault.startswith("made") else epsilon
    labels = RandomizedResponse.from_epsilon(tuple(range(classes)), made).sample(truth, rng)
    if fault.endswith("clear"):
        labels = np.where(rng.random(rows) < 0.1, truth, labels)
    if fault.startswith("an id"):
        frame["customer"] = rng.permutation(10**6)[:rows]
    return frame.assign(label=labels), truth


def outcomes(fault: str, epsilon: float, preset: str, options: argparse.Namespace) -> Iterator[str]:
    """Yield the verdict of each draw; where it passes, the decision."""
    for seed in range(options.draws):
        classes = 2 + 2 * (seed % 2)
        frame, truth = released(fault, epsilon, options.rows, classes, seed)
        claim = {"name": "randomized-response", "classes": list(range(classes)), "epsilon": epsilon}
        result = ldpaudit.audit(
            *(frame, truth, claim),
            policy=load_policy(preset),
            only=options.audits,
            threads=1,
            rng=seed,
        )
        yield result.verdict if result.verdict != "pass" else f"pass, {result.decision}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument(
        "--audits", nargs="*", default=["assumptions", "mechanism", "power", "seeds"]
    )
    parser.add_argument("--faults", nargs="*", default=FAULTS)
    options = parser.parse_args()
    print("| release | claim | " + " | ".join(PRESETS) + " |\n|" + "---|" * (2 + len(PRESETS)))
    for fault in options.faults:
        for name, epsilon in CLAIMED.items():
            cells = []
            for preset in PRESETS:
                counts = Counter(outcomes(fault, epsilon, preset, options))
                cells.append(", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
            print(f"| {fault} | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
