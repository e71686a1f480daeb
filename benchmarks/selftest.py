"""Tables of a stored self-test, as results/selftest.md shows them.

ldpaudit selftest --thorough --resume finished --json selftest.json
python benchmarks/selftest.py selftest.json
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ldpaudit.estimators.intervals.binomial import clopper_pearson

GROUPS = ("mechanism", "rows", "labels", "made")


def share(count: int, n: int) -> str:
    low, high = clopper_pearson(count, n, 0.05)
    return f"{count} of {n} ({100 * float(low):.1f} to {100 * float(high):.1f} %)"


def rows(stored: dict[str, Any], leaking: bool) -> Iterator[str]:
    last = "found" if leaking else "warned"
    heads = [last, "violation claimed", "no violation found", "inconclusive"]
    yield "| | " + " | ".join(heads) + " |"
    yield "|---|---|---|---|---|"
    order = [row for group in GROUPS for row in stored["rows"] if row["group"] == group]
    for row in [one for one in order if one["leaking"] == leaking]:
        ended, n = row["ended"], row["n"]
        counts = [ended["pass"], ended["inconclusive"]]
        name = f"{row['name']} labels" if row["group"] == "labels" else row["name"]
        name = f"{name} rows" if row["group"] == "rows" else name
        first = share(row[last], n) if leaking else str(row[last])
        cells = [name, first, share(ended["fail"], n), *counts]
        yield "| " + " | ".join(map(str, cells)) + " |"


def figures(stored: dict[str, Any]) -> Iterator[str]:
    yield "| figure | counted | documented |"
    yield "|---|---|---|"
    for one in stored["figures"]:
        counted = share(one["count"], one["n"]) if one["n"] else "–"
        yield f"| {one['title']} | {counted} | {one['side']} {100 * one['stated']:g} % |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stored", type=Path)
    stored = json.loads(parser.parse_args().stored.read_text(encoding="utf-8"))
    for part in (figures(stored), rows(stored, False), rows(stored, True)):
        print("\n".join(part), end="\n\n")


if __name__ == "__main__":
    main()
