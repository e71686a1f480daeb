"""The repository's set-ups for pipelines, and a machine as their services give it."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from ci.programs import INSTALLER
from releases import table

ROOT = Path(__file__).resolve().parents[2]
POLICY = "schema = 1\n[audit]\nmax_undetected_excess = 5.0\n[checks.claimed-epsilon]\n"


@pytest.fixture
def checkout(tmp_path):
    """A repository with a release, its truth and a policy."""
    release, truth = table(rows=300)
    folder = tmp_path / "checkout"
    folder.mkdir()
    pq.write_table(release, folder / "release.parquet")
    pq.write_table(truth, folder / "truth.parquet")
    (folder / "gate.toml").write_text(POLICY)
    return folder


@pytest.fixture
def script(checkout, tmp_path):
    """Run a step's script as a service does: strict bash, and nothing is really installed.

    ``program`` may stand in the place of ldpaudit.
    """
    programs = tmp_path / "bin"
    programs.mkdir()
    ours = f'#!/bin/sh\nexec {sys.executable} -P -m ldpaudit "$@"\n'

    def run(text, given, program=ours):
        python = INSTALLER.format(python=sys.executable)
        for name, lines in (("python", python), ("ldpaudit", program)):
            (programs / name).write_text(lines)
            (programs / name).chmod(0o755)
        path = f"{programs}:{os.environ['PATH']}"
        fixed = {"PATH": path, "PYTHONPATH": str(ROOT), "LDPAUDIT_ONLY": "mechanism"}
        environment = os.environ | fixed | given | {"PIP_LOG": str(tmp_path / "pip.log")}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
        options = {"capture_output": True, "text": True, "check": False, "timeout": 120}
        return subprocess.run(command, cwd=checkout, env=environment, **options)

    return run


@pytest.fixture
def installed(tmp_path):
    """What was asked of pip."""
    return lambda: (tmp_path / "pip.log").read_text()
