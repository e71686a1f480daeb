"""What other attack evaluators make of a release; run by attacks.py in their own environment.

Reads original.csv and released.csv from the folder given, with the columns a, b, c, d and label,
and prints {name: [share of labels inferred, seconds]} as JSON.
"""

import json
import sys
import time
import warnings
from pathlib import Path

import pandas as pd

warnings.simplefilter("ignore")
FEATURES = ["a", "b", "c", "d"]


def anonymeter(original: pd.DataFrame, released: pd.DataFrame) -> float:
    from anonymeter.evaluators import InferenceEvaluator

    evaluator = InferenceEvaluator(
        ori=original, syn=released, aux_cols=FEATURES, secret="label", n_attacks=len(original)
    )
    evaluator.evaluate(n_jobs=1)
    return float(evaluator.results().attack_rate.value)


def sdmetrics(original: pd.DataFrame, released: pd.DataFrame, name: str) -> float:
    import sdmetrics.single_table as metrics

    # The score is one less the share of cells that the attacker infers.
    attack = getattr(metrics, name)
    text = [frame.assign(label=frame["label"].astype(str)) for frame in (original, released)]
    binned = [
        frame.assign(**{c: pd.cut(frame[c], 20, labels=False).astype(str) for c in FEATURES})
        for frame in text
    ]
    score = attack.compute(*binned, key_fields=FEATURES, sensitive_fields=["label"])
    return 1.0 - float(score)


def main() -> None:
    folder = Path(sys.argv[1])
    original, released = (pd.read_csv(folder / f"{n}.csv") for n in ("original", "released"))
    attacks = {
        "Anonymeter, inference": lambda: anonymeter(original, released),
        "SDMetrics, CategoricalKNN": lambda: sdmetrics(original, released, "CategoricalKNN"),
        "SDMetrics, CategoricalNB": lambda: sdmetrics(original, released, "CategoricalNB"),
    }
    found = {}
    for name, attack in attacks.items():
        start = time.perf_counter()
        found[name] = [attack(), time.perf_counter() - start]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
