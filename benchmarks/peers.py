"""Other tools on the same tables; run in environments of their own, where ldpaudit is not.

python peers.py attack NAME FOLDER ROWS        prints [share inferred, seconds, processor seconds]
python peers.py game WITH_LABEL FOLDER EPSILON  the same of PrivacyGuard, with its AUC in front
python peers.py report NAME FOLDER PAGE        writes a page; prints [version, processor seconds]

FOLDER holds original.csv and released.csv with the columns a, b, c, d and label; for reports
original.parquet and released.parquet with any. The imports of the tool are not counted.
"""

import contextlib
import importlib.metadata
import io
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

FEATURES = ["a", "b", "c", "d"]
ATTACKS = {
    "Anonymeter, inference": "anonymeter",
    "SDMetrics, CategoricalKNN": "CategoricalKNN",
    "SDMetrics, CategoricalNB": "CategoricalNB",
    "SDMetrics, DisclosureProtection": "DisclosureProtection",
}
REPORTS = ("evidently", "ydata-profiling", "sdmetrics")


def anonymeter(original: pd.DataFrame, released: pd.DataFrame, rows: int) -> float:
    from anonymeter.evaluators import InferenceEvaluator

    columns = {"aux_cols": FEATURES, "secret": "label", "n_attacks": rows}
    evaluator = InferenceEvaluator(ori=original, syn=released, **columns)
    evaluator.evaluate(n_jobs=1)
    return float(evaluator.results().attack_rate.value)


def sdmetrics(original: pd.DataFrame, released: pd.DataFrame, name: str) -> float:
    """Return the share of cells that the attacker infers: one less the score."""
    import sdmetrics.single_table as metrics

    attack = getattr(metrics, name)
    if name == "DisclosureProtection":
        columns = {"known_column_names": FEATURES, "continuous_column_names": FEATURES}
        more = {"sensitive_column_names": ["label"], "num_discrete_bins": 20}
        more |= {"computation_method": "generalized_cap"}
        return 1 - float(
            attack.compute_breakdown(original, released, **columns, **more)["cap_protection"]
        )
    binned = [
        frame.assign(
            label=frame["label"].astype(str),
            **{c: pd.cut(frame[c], 20, labels=False).astype(str) for c in FEATURES},
        )
        for frame in (original, released)
    ]
    return 1 - float(attack.compute(*binned, key_fields=FEATURES, sensitive_fields=["label"]))


def attack(name: str, folder: str, rows: str) -> list[float]:
    """Attack so many rows, given the whole release."""
    original, released = (pd.read_csv(f"{folder}/{n}.csv") for n in ("original", "released"))
    if name == "anonymeter":
        # Numba compiles at the first call.
        anonymeter(original.head(100), released.head(100), 100)
    else:
        original = original.sample(int(rows), random_state=1)
    wall, used = time.perf_counter(), time.process_time()
    if name == "anonymeter":
        share = anonymeter(original, released, int(rows))
    else:
        share = sdmetrics(original, released, name)
    return [share, time.perf_counter() - wall, time.process_time() - used]


def game(with_label: str, folder: str, epsilon: str) -> list[float]:
    """Play PrivacyGuard's label-inference game: is a label the true one, or re-drawn?

    Labels are re-drawn from a cross-fitted model, corrected for randomized response. The attacker
    has the predictions of a model of all rows, or, with the label, the corrected odds times e^±ε.
    """
    from privacy_guard.analysis.lia.lia_analysis_node import LIAAnalysisNode
    from privacy_guard.analysis.mia.aggregate_analysis_input import AggregationType
    from privacy_guard.attacks.lia_attack import LIAAttack, LIAAttackInput
    from scipy.special import expit, logit
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    start, used = time.perf_counter(), time.process_time()
    original, released = (pd.read_csv(f"{folder}/{n}.csv") for n in ("original", "released"))
    values, labels, model = released[FEATURES], released["label"], LogisticRegression()
    target = model.fit(values, labels).predict_proba(values)[:, 1]
    others = cross_val_predict(model, values, labels, cv=2, method="predict_proba")[:, 1]
    flip = 1 / (1 + np.exp(float(epsilon)))
    clean = np.clip((others - flip) / (1 - 2 * flip), 1e-3, 1 - 1e-3)
    if with_label == "yes":
        target = expit(logit(clean) + float(epsilon) * (2 * labels - 1))
    np.random.seed(1)  # noqa: NPY002 (it draws from the global state)
    rows = pd.DataFrame({"user_id": np.arange(len(original)), "label": original["label"]})
    known, drawn = rows.assign(predictions=target), rows[["user_id"]].assign(predictions=clean)
    none = AggregationType.NONE
    prepared = LIAAttackInput(known, drawn, none).prepare_attack_input()
    played = LIAAttack(prepared, none, num_resampling_times=20).run_attack()
    found = LIAAnalysisNode(played, delta=0.0, num_bootstrap_resampling_times=2).run_analysis()
    spent = [time.perf_counter() - start, time.process_time() - used]
    return [float(found.auc), float(found.accuracy), *spent]


def report(name: str, folder: str, page: str) -> list[Any]:
    """Write the tool's own page with its defaults; SDMetrics has pictures, no page."""
    original, released = (
        pd.read_parquet(f"{folder}/{n}.parquet") for n in ("original", "released")
    )
    make: Callable[[], object]
    if name == "evidently":
        from evidently import Report
        from evidently.presets import DataDriftPreset, DataSummaryPreset

        asked = Report([DataSummaryPreset(), DataDriftPreset()])
        make = lambda: asked.run(released, original).save_html(page)  # noqa: E731
    elif name == "ydata-profiling":
        from ydata_profiling import ProfileReport

        profile = ProfileReport(released, title="Adult", progress_bar=False)
        make = lambda: profile.to_file(page, silent=True)  # noqa: E731
    else:
        from sdmetrics.reports.single_table import QualityReport

        kinds = original.dtypes.map(pd.api.types.is_numeric_dtype)
        types = {c: {"sdtype": "numerical" if n else "categorical"} for c, n in kinds.items()}

        def make() -> None:
            quality = QualityReport()
            quality.generate(original, released, {"columns": types}, verbose=False)
            pictures = map(quality.get_visualization, ("Column Shapes", "Column Pair Trends"))
            parts = [
                p.to_html(full_html=False, include_plotlyjs=not i) for i, p in enumerate(pictures)
            ]
            Path(page).write_text(f"<!DOCTYPE html><meta charset=utf-8>{''.join(parts)}")

    start = sum(os.times()[:4])
    make()
    return [importlib.metadata.version(name), sum(os.times()[:4]) - start]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(io.StringIO()):
        found = {"attack": attack, "game": game, "report": report}[sys.argv[1]](*sys.argv[2:])
    print(json.dumps(found))
