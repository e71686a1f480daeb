"""Reports of other tools on a table; run by reports.py in an environment of their own.

    python report_peers.py evidently|ydata-profiling|sdmetrics ORIGINAL RELEASED PAGE

Writes the tool's own page with its defaults (SDMetrics has no page, only pictures: those are
written one after the other) and prints [version, processor seconds] as JSON, the imports of
the tool itself not counted.
"""

import contextlib
import importlib.metadata
import io
import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pandas as pd

warnings.simplefilter("ignore")


def evidently(original: pd.DataFrame, released: pd.DataFrame, page: Path) -> Callable[[], None]:
    from evidently import Report
    from evidently.presets import DataDriftPreset, DataSummaryPreset

    def make() -> None:
        report = Report([DataSummaryPreset(), DataDriftPreset()])
        report.run(released, original).save_html(str(page))

    return make


def ydata(_original: pd.DataFrame, released: pd.DataFrame, page: Path) -> Callable[[], None]:
    from ydata_profiling import ProfileReport

    def make() -> None:
        ProfileReport(released, title="Adult", progress_bar=False).to_file(page, silent=True)

    return make


def sdmetrics(original: pd.DataFrame, released: pd.DataFrame, page: Path) -> Callable[[], None]:
    from sdmetrics.reports.single_table import QualityReport

    numeric = original.dtypes.map(pd.api.types.is_numeric_dtype)
    kinds = {
        name: "numerical" if is_number else "categorical" for name, is_number in numeric.items()
    }
    metadata = {"columns": {name: {"sdtype": kind} for name, kind in kinds.items()}}

    def make() -> None:
        report = QualityReport()
        report.generate(original, released, metadata, verbose=False)
        pictures = map(report.get_visualization, ("Column Shapes", "Column Pair Trends"))
        first, second = (
            picture.to_html(full_html=False, include_plotlyjs=place == 0)
            for place, picture in enumerate(pictures)
        )
        page.write_text(f"<!DOCTYPE html><meta charset=utf-8>{first}{second}")

    return make


PEERS = {"evidently": evidently, "ydata-profiling": ydata, "sdmetrics": sdmetrics}


def main(name: str, original: str, released: str, page: str) -> None:
    tables = [pd.read_parquet(path) for path in (original, released)]
    work = PEERS[name](*tables, Path(page))
    start = _used()
    with contextlib.redirect_stdout(io.StringIO()):
        work()
    print(json.dumps([importlib.metadata.version(name), _used() - start]))


def _used() -> float:
    """Return the processor seconds so far, those of ended child processes included."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    main(*sys.argv[1:5])
