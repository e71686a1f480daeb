"""Signals at random moments: what commands leave behind when they are ended.

    python benchmarks/signals.py [--each 100] [--slow 20] [--seed 1] [--folder DIR]

Each command is sent SIGKILL, SIGTERM, SIGINT, SIGINT twice and SIGHUP in turn, at a moment drawn
uniformly over its usual duration; in every second run its outputs are there already. After SIGKILL
the command runs once more, which must remove what was left. Prints a Markdown table, and one line
for each fault.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from killing.commands import COMMANDS, SLOW, write_inputs
from killing.running import SIGNALS, Command, import_everything, one_case

HEAD = "| command | signals | ended before the end | left after a kill, then removed | faults |"


def campaign(command: Command, inputs: Path, folder: Path, turns: int, seed: int) -> Counter[str]:
    """Send so many signals to a command; count how it ended."""
    rng, counted = random.Random(f"{seed} {command.name}"), Counter[str]()
    usual = import_everything([command], inputs, folder / "usual")[command.name]
    ready = folder / "usual" / "second-0" / "out" if command.replaces else None
    for turn in range(turns):
        case = SIGNALS[turn % len(SIGNALS)]
        over = ready if turn // len(SIGNALS) % 2 else None
        place = folder / f"turn-{turn}"
        found, wrong = one_case(command, inputs, place, usual, case, rng, over)
        counted["signals"] += 1
        counted["early"] += found.status not in (0, 1, 3)
        counted["left"] += found.left
        counted["faults"] += bool(wrong)
        for fault in wrong:
            print(f"FAULT {command.name}, turn {turn}, {case[0]}: {fault}", file=sys.stderr)
        shutil.rmtree(place)
    return counted


def lines(turns: dict[Command, int], seed: int, folder: Path) -> Iterator[str]:
    """Yield the lines of the table."""
    yield from (HEAD, "|---|---:|---:|---:|---:|")
    inputs, total = folder / "inputs", Counter[str]()
    inputs.mkdir()
    write_inputs(inputs)
    for number, (command, count) in enumerate(turns.items()):
        place = folder / str(number)
        place.mkdir()
        found = campaign(command, inputs, place, count, seed)
        total += found
        yield _line(command.name, found)
    yield _line("**all**", total)


def _line(name: str, found: Counter[str]) -> str:
    return (
        f"| {name} | {' | '.join(str(found[k]) for k in ('signals', 'early', 'left', 'faults'))} |"
    )


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=100)
    parser.add_argument("--slow", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    turns = dict.fromkeys(COMMANDS, given.each) | dict.fromkeys(SLOW, given.slow)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for line in lines(turns, given.seed, Path(folder)):
            print(line, flush=True)
    print(f"\n{time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
