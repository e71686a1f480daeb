"""The page without a network, and its commands in this process; a browser where there is one."""

import asyncio
import shutil
import sys
import threading

import pytest
from browser import NAMES
from opened import Heard, Page
from releases import written

from ldpaudit import cli
from ldpaudit.extras.web import jobs, site, worker
from ldpaudit.surfaces import speaking


@pytest.fixture
def page(tmp_path, here):
    folder = tmp_path / "scratch"
    folder.mkdir()
    made = Page(folder)
    with made.client:
        yield made


@pytest.fixture(scope="session")
def release(tmp_path_factory):
    """A release that claims ε = 1 and was made with 3, and its true labels."""
    return written(tmp_path_factory.mktemp("web"), made=3.0, rows=1200)


@pytest.fixture
def here(monkeypatch):
    """Do the tasks in this process, one at a time, and only the audits that decide."""
    monkeypatch.setenv("LDPAUDIT_ONLY", "mechanism")
    lock = threading.Lock()

    def run(words, folder, heard):
        with lock, pytest.MonkeyPatch.context() as patch, speaking("page"):
            patch.chdir(folder)
            patch.setattr(sys, "stderr", Heard(heard))
            patch.setattr(sys, "stdout", Heard(lambda _: None))
            own = words[0] in worker._TASKS
            patch.setattr(sys, "argv", ["ldpaudit", *words])
            try:
                worker.perform(words) if own else cli.main()
            except SystemExit as ended:
                if isinstance(ended.code, str):
                    heard(ended.code.removeprefix("ldpaudit: "))
                    return 2
                return ended.code or 0
            return 0

    async def work(words, folder, heard, job=None):
        return await asyncio.to_thread(run, words, folder, heard)

    monkeypatch.setattr(jobs, "work", work)
    monkeypatch.setattr(site, "work", work)


@pytest.fixture(scope="module")
def chromium():
    """A browser for the tests of a file, whose loop runs until it ends; skipped without one."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    with playwright.sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"the browser does not start here ({error.message[:80]})")
        yield browser
        browser.close()
