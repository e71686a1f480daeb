"""The Dockerfile's page: its steps in a virtual environment, where there is no daemon."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.validate
def test_the_image_shows_the_page(tmp_path: Path) -> None:
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", "").splitlines()
    source, home = tmp_path / "source", tmp_path / "opt"
    source.mkdir()
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        origin, place = ROOT / line[1:], source / line[1:]
        place.parent.mkdir(exist_ok=True)
        if line.startswith("!") and origin.is_dir():
            shutil.copytree(origin, place, symlinks=True)
        elif line.startswith("!"):
            shutil.copy(origin, place)
    (extras,) = [re.findall(r'EXTRAS="(.*)"', one)[0] for one in lines if "ARG EXTRAS" in one]
    steps = [one.removeprefix("RUN ") for one in lines if one.startswith("RUN ")]
    own = {"PATH": f"{home}/bin:{os.environ['PATH']}", "EXTRAS": extras, "PYTHONPATH": ""}
    for step in steps:
        made = step.replace("/opt/ldpaudit", str(home)).replace("/source", str(source))
        made = made.replace("python -m venv", f"{sys.executable} -m venv")
        subprocess.run(["sh", "-c", made], check=True, env=os.environ | own, cwd=tmp_path)
    command = [str(home / "bin/ldpaudit"), "open", "--container", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | own, cwd=tmp_path
    ) as server:
        try:
            assert server.stdout is not None
            (address,) = re.findall(r"http://\S+", server.stdout.readline())
            assert "Audit a release" in httpx2.get(address).text
            for name in ("open.js", "open.css", "report.css"):
                assert httpx2.get(f"{address}static/{name}").status_code == 200
            assert httpx2.get(address.replace("127.0.0.1", "127.0.0.2")).status_code == 403
        finally:
            server.terminate()
