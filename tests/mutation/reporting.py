"""What came of a sample of mutants: a table by folder, and the survivors that nobody explained."""

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
ALIVE = ("survived", "no tests")
COLUMNS = ("sampled", "killed", "equivalent", "alive")
Record = Mapping[str, Any]


def change_of(record: Record) -> tuple[str, str, str]:
    """Return what names a mutant wherever its line is: file, line of code, change."""
    return record["file"], record["code"], f"{record['before']} → {record['after']}"


def judged() -> dict[tuple[str, str, str], str]:
    """Return the survivors that were judged to change nothing, with the reason."""
    entries = tomllib.loads(EQUIVALENT.read_text())["mutant"] if EQUIVALENT.exists() else []
    return {(e["file"], e["code"], e["change"]): e["why"] for e in entries}


def folder_of(file: str) -> str:
    path = Path(file)
    inner = {"scoring", "checks"} & set(path.parts)
    return file if path.stem == "verdict" else "/".join(path.parts[: 3 if inner else 2])


def table(records: Sequence[Record]) -> str:
    """Return the counts by folder, in Markdown, with the interval of the share killed."""
    equivalent, counts = judged(), defaultdict[str, Counter[str]](Counter)
    for record in records:
        alive = record["status"] in ALIVE
        kind = (
            "killed" if not alive else "equivalent" if change_of(record) in equivalent else "alive"
        )
        counts[folder_of(record["file"])].update(["sampled", kind])
    total = sum(counts.values(), Counter[str]())
    lines = ["| folder | sampled | killed | equivalent | alive |", "|---|---|---|---|---|"]
    for name, row in [*sorted(counts.items()), ("all", total)]:
        lines.append("| " + " | ".join([name, *(str(row[c]) for c in COLUMNS)]) + " |")
    n = total["sampled"] - total["equivalent"]
    ends = binomtest(total["killed"], n).proportion_ci(0.95, "exact")
    lines.append(f"\nOf {n} that change something: {total['killed'] / n:.1%} killed, ")
    return "\n".join(lines) + f"95 % interval {ends.low:.1%} to {ends.high:.1%}."


def survivors(records: Iterable[Record]) -> list[str]:
    """Return a line for each survivor that was not judged to change nothing."""
    equivalent = judged()
    return [
        f"{r['file']}:{r['line']}: {r['before']} → {r['after']}   in: {r['code']}"
        for r in records
        if r["status"] in ALIVE and change_of(r) not in equivalent
    ]
