"""The ways from the first page to an answer in a real browser, and everybody can go them."""

import importlib.resources
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx2
import pytest
import uvicorn
from opened import OPTIONS, TOKEN

from ldpaudit.commands.run.work import write_demo
from ldpaudit.extras.web.guard import Guard
from ldpaudit.extras.web.site import Site

VIOLATIONS = """() => axe.run(document, {resultTypes: ["violations"]}).then(found =>
  found.violations.map(v => v.id + ": " + v.nodes.map(n => n.html).join(" ")))"""


@pytest.fixture
def address(here, tmp_path):
    """The page on a port of this computer, its commands in this process."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    folder = tmp_path / "scratch"
    folder.mkdir()
    site = Site(OPTIONS, folder, TOKEN, 1 << 30)
    app = Guard(site.app, TOKEN, port, site.room)
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none"))
    server.install_signal_handlers = lambda: None
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    yield f"http://127.0.0.1:{port}/{TOKEN}/"
    server.should_exit = True
    thread.join()


class Person:
    """Somebody with a browser, whose clicks are counted, and who is shown no error."""

    def __init__(self, browser, address, **how):
        self.context = browser.new_context(**how)
        self.tab = self.context.new_page()
        self.clicks = 0
        self.errors = []
        self.tab.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        base = address.partition(f"{TOKEN}/")[0]
        self.tab.on("request", lambda r: self._own(r.url, base))
        self.tab.goto(address)

    def _own(self, url, address):
        if not url.startswith((address, "data:")):
            self.errors.append(url)

    def click(self, what):
        self.clicks += 1
        self.tab.click(what)

    def choose(self, field, path):
        """Open the dialog of a field, and choose a file in it: two clicks."""
        self.clicks += 2
        self.tab.set_input_files(field, path)

    def violations(self):
        """Return what axe finds, in the light and in the dark, wide and narrow."""
        axe = importlib.resources.files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
        found = []
        before = len(self.errors)  # Styles that axe sets to measure are held back.
        for scheme, width in (("light", 1200), ("dark", 400)):
            self.tab.emulate_media(color_scheme=scheme)
            self.tab.set_viewport_size({"width": width, "height": 900})
            self.tab.evaluate(axe)  # By the debugger, which no policy holds back.
            found += self.tab.evaluate(VIOLATIONS)
            wide = self.tab.evaluate("document.documentElement.scrollWidth")
            found += [f"{wide} pixels wide at {width}"] if wide > width else []
        del self.errors[before:]
        return found


def test_the_dishonest_release_is_found_in_ten_clicks(chromium, address, tmp_path):
    files = write_demo(tmp_path / "demo", 20260101)
    person = Person(chromium, address)
    assert person.violations() == []
    person.choose("#file-release", files.dishonest)
    person.choose("#file-truth", files.truth)
    person.click("text=Go on")
    person.tab.wait_for_selector("text=The file declares")
    person.tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert person.violations() == []
    person.click("button:has-text('Audit')")
    person.tab.wait_for_selector("text=Publish: no")
    assert person.clicks <= 10
    assert person.violations() == []
    with person.tab.expect_download() as saved:
        person.tab.click("text=Save the result")
    assert (saved.value.suggested_filename, person.errors) == ("dishonest.audit.json", [])
    person.tab.go_back()
    person.tab.goto(address)
    assert "publish: no" in person.tab.inner_text(".earlier")
    person.context.close()


def test_the_sample_and_a_wrong_file_without_scripts(chromium, address, tmp_path):
    person = Person(chromium, address, java_script_enabled=False)
    wrong = tmp_path / "wrong.parquet"
    wrong.write_bytes(b"nothing")
    person.choose("#file-release", wrong)
    person.click("text=Go on")
    assert "wrong.parquet" in person.tab.inner_text(".error")
    person.tab.goto(address)
    person.click("text=Audit the sample")
    person.tab.select_option("#f-mechanism", "unknown")
    person.click("button:has-text('Audit')")
    person.tab.wait_for_selector("text=could not be done")
    person.tab.select_option("#f-mechanism", "")
    person.click("button:has-text('Audit')")
    person.tab.wait_for_selector("text=Publish: no")
    person.context.close()


def test_the_noise_by_the_keyboard(chromium, address, tmp_path, monkeypatch):
    monkeypatch.setattr("ldpaudit.extras.web.kinds.GRID", (0.5,))
    table = tmp_path / "table.csv"
    table.write_text("x,label\n" + "".join(f"{n % 7},{'ab'[n % 3 == 0]}\n" for n in range(300)))
    person = Person(chromium, f"{address}noise")
    person.choose("#file-data", table)
    person.click("text=Go on")
    person.tab.fill("#f-minutes", "0,001")
    assert person.violations() == []
    person.tab.press("#f-minutes", "Enter")
    person.tab.wait_for_selector("text=Make the release")
    assert person.violations() == []
    person.tab.focus("#at")
    person.tab.keyboard.press("Home")
    person.tab.wait_for_url("**at=0")
    assert person.tab.inner_text("label[for=at]") == "ε = 0.5"
    person.click("text=Draw the noise")
    person.tab.wait_for_selector("text=Audit this release")
    assert (person.violations(), person.errors) == ([], [])
    person.context.close()


ROOT = Path(__file__).parents[3]


@pytest.mark.validate
def test_the_image_shows_the_page(tmp_path):
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
            (address,) = re.findall(r"http://\S+", server.stdout.readline())
            assert "Audit a release" in httpx2.get(address).text
            for name in ("open.js", "open.css", "report.css"):
                assert httpx2.get(f"{address}static/{name}").status_code == 200
            assert httpx2.get(address.replace("127.0.0.1", "127.0.0.2")).status_code == 403
        finally:
            server.terminate()
