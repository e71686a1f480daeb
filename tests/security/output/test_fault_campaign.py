"""Every system call of every command that writes fails: see ``campaign.py``, which does it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from security.output.campaign import CASES

pytestmark = [
    pytest.mark.validate,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc) is on this machine"),
    pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD and /proc are Linux's"),
]


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_half_written_whatever_call_fails(name: str, tmp_path: Path) -> None:
    script = Path(__file__).with_name("campaign.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "campaign"), name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert "| all | 0 |" not in done.stdout
