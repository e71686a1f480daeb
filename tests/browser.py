"""Chromium without a window, for tests that look at pages as people do."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")


def browse(page: Path, folder: Path, *options: str) -> str:
    """Open a page and return what Chromium prints; skip where there is no Chromium."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    profile = folder / "browser"
    command = [program, *_FLAGS, f"--user-data-dir={profile}", *options, page.as_uri()]
    environment = os.environ | {"XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    if ended.returncode != 0:
        pytest.skip(f"the browser does not start here (status {ended.returncode})")
    return ended.stdout


def with_script(page: str, library: str, script: str) -> str:
    """Return a page that loads a library beside it and runs a script.

    It is without its policy, which forbids every script.
    """
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    scripts = f'<script src="{library}"></script><script>{script}</script>'
    return page.replace("</body>", f"{scripts}</body>")
