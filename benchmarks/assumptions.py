"""What the tests of assumptions say of honest releases: over many draws, the audit alone.

    python benchmarks/assumptions.py [--draws 100] [--size 3000] [--kinds honest duplicates …]

Prints a Markdown table. A p-value at or below .05 should come in at most 5 % of draws where no row
shares noise; exit status 1 in fewer still, since each test has a small share of the error.
"""

import argparse
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import ldpaudit

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from zoo.catalogue import FAULTS
from zoo.specimen import Fault

TESTS = {
    "assumptions.feature_blind": "uses features, p ≤ .05",
    "assumptions.shared_noise": "shared noise, p ≤ .05",
    "assumptions.shared_with_others": "… with others, p ≤ .05",
}
FOUND = {
    "assumptions.derived_columns": "derived columns",
    "assumptions.doubtful_columns": "doubtful columns",
    "assumptions.doubtful_rows": "doubtful rows",
    "assumptions.counted_rows": "fewer rows counted",
}
HONEST = [f.id for f in FAULTS.values() if f.honest and not f.id.startswith("honest-")]


def looked_at(fault: Fault, size: int, seed: int, truth: bool, only: list[str]) -> Counter[str]:
    """Audit one draw; what was said of it, each once."""
    specimen = fault.make(size, np.random.default_rng([seed, size, *fault.id.encode()]))
    group = specimen.options.get("group")
    result = ldpaudit.audit(
        specimen.table,
        truth=specimen.truth if truth else None,
        group=group,
        only=only,
        rng=seed,
        threads=1,
    )
    values = {estimate.id: estimate.value for estimate in result.estimates}
    said = [words for name, words in TESTS.items() if values.get(name, 1.0) <= 0.05]
    said += [words for name, words in FOUND.items() if name in values]
    return Counter([*said, *["exit 1"] * (result.verdict == "fail")])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--size", type=int, default=3000)
    parser.add_argument("--kinds", nargs="+", default=HONEST, choices=list(FAULTS))
    parser.add_argument("--alone", action="store_true", help="without the true labels")
    parser.add_argument("--only", nargs="+", default=["assumptions"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = ["exit 1", *([] if options.alone else TESTS.values()), *FOUND.values()]
    print(f"| release | draws | {' | '.join(heads)} | CPU seconds |")
    print("|" + "---|" * (3 + len(heads)))
    for kind in options.kinds:
        start, said = time.process_time(), Counter[str]()
        for seed in range(options.first, options.first + options.draws):
            said += looked_at(FAULTS[kind], options.size, seed, not options.alone, options.only)
        spent = (time.process_time() - start) / options.draws
        counts = " | ".join(str(said[head]) for head in heads)
        print(f"| {kind} | {options.draws} | {counts} | {spent:.2f} |", flush=True)


if __name__ == "__main__":
    main()
