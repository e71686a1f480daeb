"""The zoo: how many releases with a known fault are found, and how many honest ones are accused.

    python benchmarks/zoo.py [--seeds 6] [--size 10000] [--faults age-80 copy …] [--jobs 1]

Prints a Markdown table: for each fault and number of rows, with the true labels and from the
release alone, how many draws were found, in how many of them by exit status 1, and how many may be
published. For honest releases only exit status 1 counts: a false alarm.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from zoo.audited import SLOW, Outcome, audit
from zoo.catalogue import FAULTS
from zoo.specimen import Fault

Task = tuple[str, int, int, bool, tuple[str, ...], float, tuple[str, ...]]


def outcome(task: Task) -> Outcome | str:
    """Run one audit; text where it gave no result."""
    name, size, seed, truth, skip, only = task
    warnings.simplefilter("ignore")
    try:
        return audit(FAULTS[name], size, seed, truth, skip=skip, only=only)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def tasks(options: argparse.Namespace, fault: Fault, size: int, truth: bool) -> Iterator[Task]:
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        yield fault.id, size, seed, truth, tuple(options.skip), tuple(options.only)


def cell(fault: Fault, outcomes: list[Outcome | str], truth: bool) -> str:
    """Return how many were found, and by what."""
    results = [o for o in outcomes if isinstance(o, Outcome)]
    broken = f", {len(outcomes) - len(results)} without a result" * (len(results) < len(outcomes))
    accused = sum(o.accused for o in results)
    published = f"{sum(o.decision == 'publish' for o in results)} publish"
    if fault.honest:
        passed = sum(o.verdict == "pass" for o in results)
        return f"{accused} of {len(outcomes)} accused ({passed} exit 0, {published}){broken}"
    found = f"{sum(o.found for o in results)} of {len(outcomes)} ({accused} exit 1, {published})"
    found += broken
    trace = fault.insider if truth else fault.outsider
    return found + " – cannot" * bool(trace.why_not)


def shown(fault: Fault, outcomes: list[Outcome | str]) -> Iterator[str]:
    """Give what the results said, for whoever looks for a reason."""
    for one in outcomes:
        if isinstance(one, str):
            yield f"    {fault.id}: {one}"
        else:
            yield f"    {fault.id}: {one.verdict}, named {one.named}: {one.sentence}"
            yield from (f"        {fact}" for fact in one.facts)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--size", type=int, nargs="+", default=[10_000])
    parser.add_argument("--faults", nargs="+", default=list(FAULTS), choices=list(FAULTS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--skip",
        nargs="*",
        default=list(SLOW),
        help="audits to leave out; default: those that judge no claim",
    )
    parser.add_argument("--only", nargs="*", default=[], help="audits to run; default: all others")
    parser.add_argument("--truth", choices=["with", "without", "both"], default="both")
    parser.add_argument("--verbose", action="store_true", help="what each result said, to stderr")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    sides = {"with": [True], "without": [False], "both": [True, False]}[options.truth]
    heads = ["with truth" if side else "release alone" for side in sides]
    print(f"| fault | ε | rows | {' | '.join(heads)} | seconds |")
    print("|" + "---|" * (4 + len(sides)))
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in options.faults:
            for size in options.size:
                row(options, pool, FAULTS[name], size, sides)


def row(
    options: argparse.Namespace,
    pool: ProcessPoolExecutor,
    fault: Fault,
    size: int,
    sides: list[bool],
) -> None:
    start, cells = time.perf_counter(), []
    for truth in sides:
        outcomes = list(pool.map(outcome, tasks(options, fault, size, truth)))
        cells.append(cell(fault, outcomes, truth))
        if options.verbose:
            print("\n".join(shown(fault, outcomes)), file=sys.stderr)
    spent = (time.perf_counter() - start) / options.seeds / len(sides)
    epsilon = "honest" if fault.honest else f"{fault.epsilon:.3g}".replace("inf", "∞")
    print(f"| {fault.id} | {epsilon} | {size} | {' | '.join(cells)} | {spent:.1f} |", flush=True)


if __name__ == "__main__":
    main()
