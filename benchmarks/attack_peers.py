"""What other attack evaluators make of a release; run by attacks.py in their own environments.

    python attack_peers.py FOLDER attacks|privacyguard EPSILON
    python attack_peers.py FOLDER ATTACK ROWS

Reads original.csv and released.csv from the folder given, with the columns a, b, c, d and label,
and prints {name: [share of labels inferred or accuracy, AUC or null, seconds]} as JSON. With the
name of one attack, of ATTACKS below, it attacks only so many rows, given the whole release, and
prints [share, seconds, processor seconds].
"""

import contextlib
import io
import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

warnings.simplefilter("ignore")
FEATURES = ["a", "b", "c", "d"]


def anonymeter(original: pd.DataFrame, released: pd.DataFrame, rows: int | None = None) -> float:
    from anonymeter.evaluators import InferenceEvaluator

    evaluator = InferenceEvaluator(
        ori=original,
        syn=released,
        aux_cols=FEATURES,
        secret="label",
        n_attacks=rows or len(original),
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


def privacyguard(
    original: pd.DataFrame, target: np.ndarray, calibration: np.ndarray
) -> tuple[float, float]:
    """Return accuracy and AUC of its label-inference game: the true label or one re-drawn.

    ``target`` are the predictions that the released data led to, ``calibration`` those from which
    labels are re-drawn.
    """
    from privacy_guard.analysis.lia.lia_analysis_node import LIAAnalysisNode
    from privacy_guard.analysis.mia.aggregate_analysis_input import AggregationType
    from privacy_guard.attacks.lia_attack import LIAAttack, LIAAttackInput

    np.random.seed(1)  # noqa: NPY002 (it draws from the global state)
    rows = pd.DataFrame({"user_id": np.arange(len(original)), "label": original["label"]})
    prepared = LIAAttackInput(
        rows.assign(predictions=target),
        rows[["user_id"]].assign(predictions=calibration),
        AggregationType.NONE,
    ).prepare_attack_input()
    game = LIAAttack(prepared, AggregationType.NONE, num_resampling_times=20).run_attack()
    found = LIAAnalysisNode(game, delta=0.0, num_bootstrap_resampling_times=2).run_analysis()
    return float(found.accuracy), float(found.auc)


def predictions(
    released: pd.DataFrame, epsilon: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return P(label | features) of a model of all rows, of one of other rows, and with the label.

    The third corrects the second for randomized response and multiplies the odds by e^±ε.
    """
    from scipy.special import expit, logit
    from sklearn.linear_model import LogisticRegression

    values, labels = released[FEATURES].to_numpy(), released["label"].to_numpy()
    own = LogisticRegression().fit(values, labels).predict_proba(values)[:, 1]
    half = np.random.default_rng(0).permutation(len(values)) % 2
    others = np.empty(len(values))
    for h in (0, 1):
        fitted = LogisticRegression().fit(values[half == h], labels[half == h])
        others[half != h] = fitted.predict_proba(values[half != h])[:, 1]
    flip = 1 / (1 + np.exp(epsilon))
    clean = np.clip((others - flip) / (1 - 2 * flip), 1e-3, 1 - 1e-3)
    return own, clean, expit(logit(clean) + np.where(labels == 1, epsilon, -epsilon))


def privacyguard_attacks(
    original: pd.DataFrame, released: pd.DataFrame, epsilon: float
) -> dict[str, list[float]]:
    found = {}
    for name, with_label in (("a model of the release", False), ("and the released label", True)):
        start = time.perf_counter()
        own, clean, informed = predictions(released, epsilon)
        target = informed if with_label else own
        with contextlib.redirect_stdout(io.StringIO()):
            accuracy, area = privacyguard(original, target, clean)
        seconds = time.perf_counter() - start
        found[f"PrivacyGuard, label inference, {name}"] = [accuracy, area, seconds]
    return found


def disclosure(original: pd.DataFrame, released: pd.DataFrame) -> float:
    from sdmetrics.single_table import DisclosureProtection

    # "cap_protection" is one less the mean share of equal rows with the right label.
    found = DisclosureProtection.compute_breakdown(
        original,
        released,
        known_column_names=FEATURES,
        sensitive_column_names=["label"],
        continuous_column_names=FEATURES,
        num_discrete_bins=20,
        computation_method="generalized_cap",
    )
    return 1.0 - float(found["cap_protection"])


Attack = Callable[[pd.DataFrame, pd.DataFrame], float]
ATTACKS: dict[str, Attack] = {
    "Anonymeter, inference": anonymeter,
    "SDMetrics, CategoricalKNN": partial(sdmetrics, name="CategoricalKNN"),
    "SDMetrics, CategoricalNB": partial(sdmetrics, name="CategoricalNB"),
    "SDMetrics, DisclosureProtection": disclosure,
}


def attacks(original: pd.DataFrame, released: pd.DataFrame) -> dict[str, list[float | None]]:
    found: dict[str, list[float | None]] = {}
    for name in list(ATTACKS)[:3]:
        start = time.perf_counter()
        found[name] = [ATTACKS[name](original, released), None, time.perf_counter() - start]
    return found


def alone(original: pd.DataFrame, released: pd.DataFrame, name: str, rows: int) -> list[float]:
    """Return what one attack infers of so many rows, its seconds and its processor seconds."""
    attack = ATTACKS[name]
    if name.startswith("Anonymeter"):
        attack = partial(anonymeter, rows=rows)
        # Numba compiles at the first call.
        anonymeter(original.head(100), released.head(100))
    else:
        original = original.sample(rows, random_state=1)
    wall, used = time.perf_counter(), time.process_time()
    share = attack(original, released)
    return [share, time.perf_counter() - wall, time.process_time() - used]


def main() -> None:
    folder, tool = Path(sys.argv[1]), sys.argv[2]
    original, released = (pd.read_csv(folder / f"{n}.csv") for n in ("original", "released"))
    found: Any
    if tool in ATTACKS:
        found = alone(original, released, tool, int(sys.argv[3]))
    elif tool == "privacyguard":
        found = privacyguard_attacks(original, released, float(sys.argv[3]))
    else:
        found = attacks(original, released)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
