"""Delete the extras in a copy of the sources, and run the core's quick tests there.

The core must audit, judge and report without them: nothing in it may import an extra, and no test
of the core may need one.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIED = (
    "ldpaudit",
    "attacks",
    "datasets",
    "reports",
    "tests",
    "pyproject.toml",
    "docs",
    "examples",
)
REMOVED = ("ldpaudit/extras", "tests/extras")
# Folders and files of tests that need no extra, and take half a minute together. The commands are
# tested from a file to the verdict, the report and the proof.
QUICK = (
    "tests/judging",
    "tests/result",
    "tests/work",
    "tests/commands/declare",
    "tests/commands/test_end_to_end.py",
    "tests/commands/test_taken_out.py",
    "tests/pipeline/test_trees.py",
    "tests/receipt",
)
# The sources are installed in place, and would be found beside the copy.
_HERE_ALONE = """import sys
sys.meta_path[:] = [one for one in sys.meta_path if "__editable__" not in str(one)]
"""


def copied(target: Path) -> None:
    """Copy the sources without the extras."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            leave = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, target / name, symlinks=True, ignore=leave)
        else:
            shutil.copy(source, target / name)
    for name in REMOVED:
        shutil.rmtree(target / name)
    (target / "sitecustomize.py").write_text(_HERE_ALONE)


def main() -> int:
    """Return the exit status of the tests."""
    with tempfile.TemporaryDirectory(prefix="core-alone-") as folder:
        target = Path(folder)
        copied(target)
        environment = {**os.environ, "PYTHONPATH": str(target)}
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not validate", *QUICK]
        return subprocess.run([sys.executable, *words], cwd=target, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
