"""The page of an audit beside the pages of other report tools: bytes, words, requests, time.

    python benchmarks/reports.py ADULT FOLDER [PYTHON]

ADULT is adult.parquet. FOLDER gets the release, the audit and all pages. PYTHON is that of an
environment with evidently, ydata-profiling and sdmetrics (`python -m venv peers`, `peers/bin/pip
install evidently ydata-profiling sdmetrics`); a tool that is not there is named in the table.

Prints a Markdown table. Words are those of the page as it opens: after its scripts have run, less
what is folded away. Requests are counted twice: addresses in tags and style sheets that a browser
would load, and what Chromium asks for without a network. Chromium's time is from its start to the
finished page, the least of three, less that of an empty page; addresses that it asks for with
whatever page are left out.
"""

import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pandas as pd
from measuring import ran

PEERS = ("evidently", "ydata-profiling", "sdmetrics")
_LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}
_VOID = {"br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
_TIMES = 3
_OWN = frozenset(
    f"{name}.com"
    for name in ("clients2.google", "accounts.google", "android.clients.google", "www.google")
) | {"redirector.gvt1.com", "update.googleapis.com", "optimizationguide-pa.googleapis.com"}
"""Hosts that Chromium asks by itself, with whatever page."""
_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@dataclass(frozen=True)
class Made:
    """A page: by which tool, and how many seconds of the processor it took."""

    tool: str
    page: Path | None
    used: str
    remark: str = ""


class Reader(HTMLParser):
    """Counts words that are shown, scripts, and addresses that are loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.scripts = 0, 0
        self.addresses: list[str] = []
        self._hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a script, an address, and where something hidden begins."""
        values = dict(attrs)
        self.scripts += tag == "script"
        address = values.get(_LOADED.get(tag, "")) or ""
        self.addresses += [address] if address.startswith(("http:", "https:", "//")) else []
        folded = tag == "details" and "open" not in values
        unseen = "display:none" in (values.get("style") or "").replace(" ", "")
        unseen = unseen or values.get("display") == "none"
        hidden = tag in ("script", "style", "template", "noscript") or folded or unseen
        if tag not in _VOID and (hidden or tag in self._hidden):
            self._hidden.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Note where something hidden ends."""
        if tag in self._hidden:
            while self._hidden.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        """Count words that are shown."""
        if not self._hidden:
            self.words += len(data.split())


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    styles = "".join(re.findall(r"(?s)<style.*?</style>", text))
    reader.addresses += re.findall(r"(?:url\(|@import\s+)[\"']?(https?://[^\"')\s]+)", styles)
    return reader


def opened(page: str) -> tuple[str, set[str], float]:
    """Return the page after its scripts, the addresses that were asked for, and the seconds."""
    assert _CHROMIUM is not None
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "net.json"
        command = [_CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        command += ["--disable-background-networking", "--disable-component-update"]
        command += ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder}/profile"]
        command += [f"--log-net-log={log}", "--dump-dom", page]
        seconds = math.inf
        for _ in range(_TIMES):
            start = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            seconds = min(seconds, time.perf_counter() - start)
        asked = set(re.findall(r'"url":"(https?://[^"]+)"', log.read_text()))
    return done.stdout, {url for url in asked if urlsplit(url).hostname not in _OWN}, seconds


def audited(adult: Path, folder: Path) -> Made:
    """Return the page of an audit with true labels, all defaults, by the command line."""
    run = [sys.executable, "-m", "ldpaudit.cli"]
    release, stored, page = folder / "release.parquet", folder / "audit.json", folder / "audit.html"
    claim = ["--label", "income", "--mechanism", "rr", "--epsilon", "1"]
    ran([*run, "privatize", str(adult), "-o", str(release), "--overwrite", *claim])
    output = ["--html", str(page), "--json", str(stored), "--truth", str(adult), "--exit-zero"]
    measured = ran([*run, "run", str(release), *output]).used
    code = (
        "import sys, time; from pathlib import Path; from ldpaudit.result import AuditResult; "
        "from ldpaudit.reports.html import render; "
        "result = AuditResult.from_json(Path(sys.argv[1]).read_text()); "
        "start = time.process_time(); text = render(result); "
        "print(time.process_time() - start); Path(sys.argv[2]).write_text(text)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, stored, page], check=True, capture_output=True, text=True
    )
    used = f"{measured:.0f}, of these {float(done.stdout):.1f} for the page"
    return Made("ldpaudit run", page, used)


def of_peer(name: str, adult: Path, folder: Path, python: str) -> Made:
    page = folder / f"{name}.html"
    script = Path(__file__).with_name("report_peers.py")
    command = [python, script, name, adult, folder / "release.parquet", page]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["not there"])[-1]
        return Made(name, None, "–", f"not measured: {reason[:80]}")
    version, used = json.loads(done.stdout.splitlines()[-1])
    return Made(f"{name} {version}", page, f"{used:.0f}")


def row(made: Made, empty: float) -> str:
    if made.page is None:
        return f"| {made.tool} | {made.remark} | | | | | | |"
    text = made.page.read_text()
    parsed = read(text)
    cells = [made.tool, f"{len(text.encode()) / 1000:,.0f}"]
    if _CHROMIUM is None:
        shown, asked, seconds = parsed, "no Chromium", "–"
    else:
        dom, every, wall = opened(made.page.as_uri())
        shown, asked, seconds = read(dom), str(len(every)), f"{max(wall - empty, 0):.1f}"
    cells += [f"{shown.words:,}", str(parsed.scripts), str(len(parsed.addresses)), asked, seconds]
    return f"| {' | '.join([*cells, made.used])} |"


def main(adult: str, folder: str, python: str = sys.executable) -> None:
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    whole = place / "adult.parquet"
    pd.read_parquet(adult).drop(columns=["split"], errors="ignore").to_parquet(whole, index=False)
    pages = [audited(whole, place), *(of_peer(name, whole, place, python) for name in PEERS)]
    empty = opened("about:blank")[2] if _CHROMIUM else 0.0
    headers = ("report", "kB", "words as it opens", "scripts", "addresses in it")
    headers += ("asked for by Chromium", "Chromium, s", "to make, processor s")
    print(f"| {' | '.join(headers)} |\n|{'---|' * len(headers)}")
    for made in pages:
        print(row(made, empty), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
