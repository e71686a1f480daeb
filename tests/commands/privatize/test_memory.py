"""Memory does not grow with the number of rows."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PEAK = """
import re, sys
from pathlib import Path
from ldpaudit.commands.privatize.scan import ReleasedColumns
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.commands.privatize.work import privatize
output = Path(sys.argv[1]).with_suffix(".released.parquet")
both = ("label", "other")
# The models of a sample of rows take most of the time, and as much memory for any table.
ReleasedColumns.check = lambda _: ()
privatize(PrivatizeRequest(sys.argv[1], output, "randomized-response", label=both, epsilon=1.0))
status = Path("/proc/self/status").read_text()
print(int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) // 1024)
"""


def peak(folder: Path, rows: int, columns: int) -> int:
    """Return the peak resident memory of a run in MiB; the input is one single row group."""
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux tells a process its own peak memory")
    rng = np.random.default_rng(0)
    private = {name: rng.integers(0, 2, rows) for name in ("label", "other")}
    table = pa.table({f"x{i}": rng.random(rows) for i in range(columns - 1)} | private)
    path = folder / f"{rows}.parquet"
    pq.write_table(table, path, row_group_size=rows)
    words = [sys.executable, "-c", PEAK, str(path)]
    return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def test_memory_is_constant(tmp_path: Path) -> None:
    # 500,000 more rows of 9 columns are 34 MiB if they are kept.
    assert peak(tmp_path, 600_000, 8) - peak(tmp_path, 100_000, 8) < 24


@pytest.mark.validate
def test_memory_is_constant_at_three_million_rows(tmp_path: Path) -> None:
    assert peak(tmp_path, 3_000_000, 20) - peak(tmp_path, 300_000, 20) < 100
