from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent

# Examples are drawn anew on each run, but a slow machine is no failure.
settings.register_profile("ldpaudit", deadline=None)
settings.load_profile("ldpaudit")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public datasets beside the project."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the public datasets (../shared/data) are not on this machine")
    return folder


@pytest.fixture(autouse=True)
def _few_attacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands under test run the cheap attacks only, unless they ask for more."""
    monkeypatch.setenv("LDPAUDIT_BUDGET", "2")
