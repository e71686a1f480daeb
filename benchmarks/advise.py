"""How near the choice of ``ldpaudit advise`` is to the best of an exhaustive sweep.

    python benchmarks/advise.py DATA [adult|diabetes|fertility …] [--rows N] [--minutes M]

Advice is asked for under the starter policy. Then every mechanism that the labels allow is
released, audited (as ``ldpaudit run`` would, by the audits that the policy's limits need) and
learnt from at every ε of a grid, on the same rows. The best of these is the one whose learner does
best on the rows that advice reports on, among those that the policy lets pass. Prints a Markdown
table; DATA is the folder of public datasets. ``--rows`` takes a random sample of each table.
"""

import argparse
import math
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ldpaudit.commands.advise.clock import Clock
from ldpaudit.commands.advise.closed_forms.candidates import Candidate, Family, families
from ldpaudit.commands.advise.closed_forms.limits import Limits
from ldpaudit.commands.advise.closed_forms.study import Study, read_study
from ldpaudit.commands.advise.closed_forms.utility import yardstick
from ldpaudit.commands.advise.request import AdviseRequest
from ldpaudit.commands.advise.result import Advice
from ldpaudit.commands.advise.simulation import Simulation, Simulator, try_to_draw
from ldpaudit.commands.advise.work import advise
from ldpaudit.judging.policy import STARTER, Policy, parse_policy

GRID = "0.25,0.5,0.75,1,1.5,2,3,4"


@dataclass(frozen=True)
class Case:
    """A table and its private column; ``labels`` states the range of numbers."""

    file: str
    label: str
    labels: str | None = None


CASES = {
    "adult": Case("adult.parquet", "income"),
    "diabetes": Case("diabetes130.parquet", "readmitted"),
    "fertility": Case("fertility.parquet", "work", "0:52:1"),
}


@dataclass(frozen=True)
class Tried:
    """A point of the exhaustive sweep."""

    candidate: Candidate
    simulation: Simulation

    @property
    def passes(self) -> bool:
        """Whether the policy lets the simulated release pass; its power is a closed form."""
        power = [held for held in self.candidate.held if held.limit.measure == "excess"]
        return not self.simulation.failed and all(held.passes for held in power)


def sampled(path: Path, rows: int | None, folder: Path) -> Path:
    """Return the table, or a file with a random sample of its rows."""
    table = pq.read_table(path)
    if rows is None or rows >= table.num_rows:
        return path
    chosen = np.sort(np.random.default_rng(0).choice(table.num_rows, rows, replace=False))
    place = folder / path.name
    pq.write_table(table.take(pa.array(chosen)), place)
    return place


def exhaustive(
    study: Study, policy: Policy, grid: set[float], extra: dict[str, set[float]]
) -> Iterator[Tried]:
    """Yield every mechanism at every ε of a grid, and at those of the advice."""
    limits = Limits.of(policy, len(study.release.classes))
    simulator = Simulator(study, limits, policy, 0.95, Clock(math.inf))
    for family in families(study, limits, yardstick(study)):
        for epsilon in sorted(grid | extra.get(family.name, set())):
            if (tried := one(family, epsilon, simulator)) is not None:
                yield tried


def one(family: Family, epsilon: float, simulator: Simulator) -> Tried | None:
    """Return a point; None where it cannot be made."""
    candidate = family.tried(epsilon)
    if candidate is None:
        return None
    drawn = try_to_draw(simulator, candidate)
    return None if isinstance(drawn, str) else Tried(candidate, drawn)


def best(points: list[Tried], *, higher: bool) -> Tried | None:
    """Return the point of the best measured utility among those that pass."""
    able = [point for point in points if point.passes and point.simulation.utility is not None]
    sign = -1.0 if higher else 1.0
    return min(able, key=lambda point: sign * value(point), default=None)


def value(point: Tried) -> float:
    """Return the measured utility."""
    assert point.simulation.utility is not None
    return point.simulation.utility.value


def shown(point: Tried | None) -> str:
    """Return a point with its utility and interval."""
    if point is None or point.simulation.utility is None:
        return "none"
    found = point.simulation.utility
    ends = f"[{found.low:.4g}, {found.high:.4g}]"
    return f"{point.candidate.words}: {found.value:.4g} {ends}"


def chosen(advice: Advice, points: list[Tried]) -> Tried | None:
    """Return the point of the first recommendation."""
    if not advice.recommendations:
        return None
    first = advice.recommendations[0].choices[0].candidate
    wanted = (first.name, first.epsilon)
    same = (p for p in points if (p.candidate.name, p.candidate.epsilon) == wanted)
    return next(same, None)


def within(ours: Tried | None, theirs: Tried | None) -> str:
    """Return whether the choice lies within the interval of the best."""
    if ours is None or theirs is None or theirs.simulation.utility is None:
        return "yes" if ours is theirs else "no"
    found = theirs.simulation.utility
    assert found.low is not None
    assert found.high is not None
    return "yes" if found.low <= value(ours) <= found.high else "no"


def row(name: str, case: Case, path: Path, minutes: float, grid: set[float]) -> str:
    """Return a line of the table."""
    policy = parse_policy(STARTER)
    request = AdviseRequest(
        str(path), label=(case.label,), labels=case.labels, policy=policy, minutes=minutes
    )
    wall, start = time.perf_counter(), time.process_time()
    advice = advise(request)
    wall, start = time.perf_counter() - wall, time.process_time() - start
    extra: dict[str, set[float]] = {}
    for recommendation in advice.recommendations:
        found = recommendation.choices[0].candidate
        extra.setdefault(found.name, set()).add(found.epsilon)
    study = read_study(replace(request, label=(case.label,)), case.label, ())
    begun = time.process_time()
    points = list(exhaustive(study, policy, grid, extra))
    spent = time.process_time() - begun
    ours, theirs = chosen(advice, points), best(points, higher=case.labels is None)
    passing = "–" if ours is None else "yes" if ours.passes else "no"
    return (
        f"| {name} | {study.rows:,} | {shown(ours)} | {passing} | {shown(theirs)} | "
        f"{within(ours, theirs)} | {start:.0f} ({wall:.0f}) | {len(points)} points, {spent:.0f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--rows", type=int)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--grid", default=GRID, help="ε of the exhaustive sweep")
    options = parser.parse_args()
    grid = {float(text) for text in options.grid.split(",")}
    print(
        "| table | rows | the advice's first choice, simulated again | passes | the best of the "
        "sweep | within its interval | advice: CPU s (wall) | sweep: CPU s |"
    )
    print("|---|--:|---|---|---|---|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.cases:
            case = CASES[name]
            path = sampled(options.data / case.file, options.rows, Path(folder))
            print(row(name, case, path, options.minutes, grid), flush=True)


if __name__ == "__main__":
    main()
