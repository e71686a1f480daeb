"""Record invocations anew, or compare them exactly with what is recorded.

``PYTHONPATH=tests python -m golden.record [--compare] [--data FOLDER] [NAME …]``; without names
all are run, those on public tables only where FOLDER (default: ../shared/data) is there.
"""

import same_arithmetic  # noqa: F401, I001 - before NumPy and torch are loaded.

import argparse
import sys
import tempfile
import time
from pathlib import Path

from golden.inputs import write_inputs, write_real
from golden.invocations import INVOCATIONS
from golden.recording import HERE, differences, load, outcome, save

DATA = HERE.parents[3] / "shared" / "data"


def main() -> int:
    """Run what was asked for; the exit status says whether anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--data", type=Path, default=DATA)
    asked = parser.parse_args()
    found, differ, data = {}, False, asked.data.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "inputs").mkdir()
        write_inputs(folder / "inputs")
        if data.is_dir():
            write_real(data, folder / "inputs")
        for one in INVOCATIONS:
            if (asked.names and one.name not in asked.names) or (one.real and not data.is_dir()):
                continue
            started = time.perf_counter()
            found[one.name] = outcome(one, folder / "inputs", folder / one.name)
            seconds = time.perf_counter() - started
            print(f"{one.name}: exit status {found[one.name]['status']}, {seconds:.1f} s")  # noqa: T201
            if asked.compare:
                for line in differences(load(one.name), found[one.name], exact=True):
                    differ = True
                    print(f"  {line}")  # noqa: T201
    if not asked.compare:
        save(found)
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
