"""Other tools on the same tables; run in environments of their own, where ldpaudit is not.

python peers.py attack NAME FOLDER ROWS        prints [share inferred, seconds, processor seconds]
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
        found = {"attack": attack, "report": report}[sys.argv[1]](*sys.argv[2:])
    print(json.dumps(found))
