"""Fuzz all parsers in turn: ``python -m fuzz.run --minutes 10 [PARSER …]``.

What is found lies in build/fuzz, with the inputs that reach new code. Ends with status 1 if
anything went wrong.
"""

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz.targets import CORPUS, TARGETS
from pyarrow import feather

FOLDER: Final = Path("build/fuzz")
_LONGEST: Final = 8192
"""Bytes of an input."""
_MEMORY: Final = 2048
_ROUND: Final = 120
"""Seconds that a parser has before it is the next one's turn."""


def fuzz(name: str, seconds: int) -> tuple[int, list[str]]:
    """Fuzz one parser; return how often it was run, and the faults."""
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    options = (
        *(f"-max_total_time={seconds}", f"-max_len={_LONGEST}", f"-rss_limit_mb={_MEMORY}"),
        *("-print_final_stats=1", f"-artifact_prefix={FOLDER}/", "-timeout=60", "-reload=0"),
    )
    corpora = (str(f) for f in (folder, CORPUS / name) if f.is_dir())
    words = (sys.executable, "-m", "fuzz.child", name, str(FOLDER), *options, *corpora)
    ended = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    said = ended.stdout + ended.stderr
    executed = re.search(r"number_of_executed_units: (\d+)", said)
    faults = re.findall(r"^FAULT .*", said, re.MULTILINE)
    if ended.returncode:
        faults.append(f"FAULT {name}: ended with {ended.returncode}: {said[-600:]}")
    return int(executed[1]) if executed else 0, faults


def write_binary_seeds() -> None:
    """Write a small table in each binary format, as no such file is kept in the repository."""
    labels, numbers = np.array(["a", "b"] * 11), np.arange(22.0)
    table = pa.table({"label": labels, "x": numbers, "c": pa.array(labels).dictionary_encode()})
    for name in ("parquet", "feather", "npz"):
        (FOLDER / name).mkdir(parents=True, exist_ok=True)
    declared = table.replace_schema_metadata({"ldpaudit": b'{"version": 1, "label": "label"}'})
    pq.write_table(declared, FOLDER / "parquet" / "seed", compression="none")
    feather.write_feather(declared, str(FOLDER / "feather" / "seed"), compression="uncompressed")
    with (FOLDER / "npz" / "seed").open("wb") as file:
        np.savez(file, label=labels, x=numbers)


def rotate(names: Sequence[str], minutes: float) -> tuple[Counter[str], list[str]]:
    """Fuzz parsers in turn until the time is over; return the runs of each, and the faults."""
    left, runs, faults = minutes * 60, Counter[str](), list[str]()
    while left > 0:
        for name in names:
            seconds = int(min(_ROUND, max(left / len(names), 5)))
            executed, found = fuzz(name, seconds)
            runs[name] += executed
            faults += found
            left -= seconds
            print(f"{name}: {executed:,} runs", *found, sep="\n", flush=True)
            _count(runs)
    return runs, faults


def _count(runs: Counter[str]) -> None:
    (FOLDER / "runs.json").write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n")


def main() -> None:
    """Fuzz, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parsers", nargs="*", default=list(TARGETS))
    parser.add_argument("--minutes", type=float, default=10.0)
    stated = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_binary_seeds()
    runs, faults = rotate(stated.parsers, stated.minutes)
    print("| parser | runs |\n|---|---:|")
    for name, executed in runs.items():
        print(f"| {name} | {executed:,} |")
    print(f"| all | {runs.total():,} |\n\n{len(faults)} faults.")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
