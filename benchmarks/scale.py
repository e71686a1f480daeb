"""How long audits of tables of every size take, and in how much memory.

    python benchmarks/scale.py FOLDER [CASE …] [--data DATA] [--options='--threads 2'] [--limit S]

Makes each case's release in FOLDER, where it is not there yet (scale_tables.py, real_releases.py),
runs the command line as a user would, and prints a Markdown table: wall seconds, processor seconds,
the most memory of the process and its children together, exit status, the audits that took
longest. Without CASE all but the largest run, one at a time; ``--list`` names all. DATA is the
folder of public datasets. Keep the folder: a table of 100 million rows takes minutes to make.

Memory is what /proc says of resident pages, added up over the process and its children every
tenth of a second, or what the kernel says of the largest of them, whichever is more. Pages that
processes share count in each.
"""

import argparse
import contextlib
import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

HERE = Path(__file__).parent
GIB = 2**30
CTR = "--queries 100000 --neighbors 10000 --only instance-loss"
SAMPLED = "--queries 1000000 --neighbors 1000 --only instance-loss"
EVERY = "--queries all --neighbors 1000 --only instance-loss"


@dataclass(frozen=True)
class Case:
    """A release, how it is made, the options of its audit, and what it took and should take."""

    name: str
    release: str
    made: str = ""
    options: str = ""
    before: str = "–"
    wanted: str = "–"
    large: bool = False


def dense(rows: int, columns: int = 18) -> tuple[str, str]:
    """Return the file's name and the words that make it."""
    if columns == 18:
        return f"susy-{rows}.parquet", f"susy --rows {rows}"
    return f"susy-{rows}-{columns}.parquet", f"susy --rows {rows} --columns {columns}"


def public(name: str) -> tuple[str, str]:
    return f"{name}.honest.parquet", "public"


CASES = (
    Case("demo", "", before="45 s", wanted="12 s"),
    Case(
        "30,000 × 23", "credit-30000.parquet", "credit --rows 30000", before="77 s", wanted="15 s"
    ),
    Case("Adult", *public("adult"), before="43 s", wanted="15 s"),
    Case("diabetes130", *public("diabetes130"), before="117 s", wanted="30 s"),
    Case("fertility", *public("fertility"), before="50 s", wanted="25 s"),
    Case("3,000 × 2,000", *dense(3_000, 2_000), before="> 226 s", wanted="60 s"),
    Case("1 M × 20", *dense(1_000_000, 20), before="93 s, 1.7 GiB", wanted="45 s, 1.5 GiB"),
    Case("4.5 M × 18", *dense(4_500_000), before="255 s, 3.1 GiB", wanted="90 s, 2 GiB"),
    Case("4.5 M × 18, every row, raw", *dense(4_500_000), f"{EVERY} --metric raw", large=True),
    Case(
        "4.5 M × 18, every row, learned",
        *dense(4_500_000),
        f"{EVERY} --metric learned",
        before="362 s with raw, 2.4 GiB",
        wanted="240 s with raw, 2 GiB",
        large=True,
    ),
    Case(
        "20 M × 18, 10⁶ queries",
        *dense(20_000_000),
        f"{SAMPLED} --memory 4GiB",
        wanted="300 s, 4 GiB",
        large=True,
    ),
    Case(
        "100 M × 18, 10⁶ queries",
        *dense(100_000_000),
        f"{SAMPLED} --memory 4GiB",
        wanted="1500 s, 4 GiB",
        large=True,
    ),
    Case(
        "CTR, 5 M × 10⁶ sparse, k = 10,000",
        "ctr-5000000.svm",
        "ctr --rows 5000000",
        f"{CTR} --memory 4GiB",
        wanted="600 s, 4 GiB",
        large=True,
    ),
    # Small ones of the same kinds, to try the others out.
    Case("200,000 × 18", *dense(200_000)),
    Case("200,000 × 18, every row", *dense(200_000), EVERY),
    Case("CTR, 50,000 × 10⁶ sparse", "ctr-50000.svm", "ctr --rows 50000", CTR),
)


def made(case: Case, folder: Path, data: Path | None) -> Path:
    """Return the release of a case, made by a process of its own where it is not there yet."""
    release = folder / case.release
    if release.exists() or not case.made:
        return release
    print(f"making {case.release}", file=sys.stderr)
    folder.mkdir(parents=True, exist_ok=True)
    if case.made == "public":
        if data is None:
            raise SystemExit(f"{case.name} needs --data, the folder of public datasets.")
        words = [str(HERE / "real_releases.py"), "make", str(data), str(folder)]
        subprocess.run([sys.executable, *words, case.release.split(".")[0]], check=True)
        return release
    # A run that is cut off leaves nothing that looks like a release.
    table, *words = case.made.split()
    new = folder / "unfinished"
    call = [sys.executable, str(HERE / "scale_tables.py"), table, str(new), *words]
    subprocess.run(call, check=True, stdout=subprocess.DEVNULL)
    for file in sorted(new.iterdir(), reverse=True):
        file.rename(folder / file.name)
    return release


def command(case: Case, release: Path, options: list[str]) -> list[str]:
    program = [sys.executable, "-c", "from ldpaudit.cli import main; main()"]
    if not case.release:
        return [*program, "demo"]
    truth = release.with_name(release.name.split(".")[0] + ".truth.parquet")
    result, page = (release.with_suffix(f".audit.{kind}") for kind in ("json", "html"))
    paths = [str(release), "--truth", str(truth), "--json", str(result), "--html", str(page)]
    return [*program, "run", *paths, *case.options.split(), *options]


@dataclass(frozen=True)
class Measured:
    """Exit status, wall and processor seconds, bytes, and what the command printed."""

    status: int
    wall: float
    used: float
    peak: int
    output: str


def resident(process: psutil.Process) -> int:
    """Return the resident bytes of a process and its children."""
    total = 0
    with contextlib.suppress(psutil.Error):
        for one in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                total += one.memory_info().rss
    return total


@contextlib.contextmanager
def watched(pid: int) -> Iterator[list[int]]:
    """Watch the resident bytes of a process and its children; the most so far in a list of one."""
    most, ended = [0], threading.Event()

    def watch() -> None:
        process = psutil.Process(pid)
        while not ended.wait(0.1):
            most[0] = max(most[0], resident(process))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()


def measured(words: list[str], limit: float) -> Measured:
    """Run a command, end it after ``limit`` seconds, and measure it with its children."""
    start = time.perf_counter()
    pipe = subprocess.PIPE
    process = subprocess.Popen(words, stdout=pipe, stderr=subprocess.STDOUT, text=True)
    timer = threading.Timer(limit, process.terminate)
    timer.start()
    with watched(process.pid) as most:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
    timer.cancel()
    wall = time.perf_counter() - start
    peak = max(most[0], usage.ru_maxrss * 1024)
    used = usage.ru_utime + usage.ru_stime
    return Measured(os.waitstatus_to_exitcode(status), wall, used, peak, output)


def longest(case: Case, release: Path, done: Measured) -> str:
    """Return the three audits that took longest; of a run without a result its last line."""
    if not case.release:
        return "–"
    if done.status not in (0, 1, 3):
        return (done.output.strip() or "–").splitlines()[-1]
    audits = json.loads(release.with_suffix(".audit.json").read_text())["audits"]
    audits = sorted(audits, key=lambda audit: -audit["seconds"])[:3]
    return ", ".join(f"{audit['id']} {audit['seconds']:.1f}" for audit in audits)


def main() -> None:
    parser = argparse.ArgumentParser(description="Audits of tables of every size, measured.")
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--data", type=Path, help="the folder of public datasets")
    parser.add_argument("--options", type=shlex.split, default=[], help="more options of run")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds for each case")
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    if asked.list or asked.folder is None:
        print("\n".join(case.name for case in CASES))
        return
    unknown = set(asked.cases) - {case.name for case in CASES}
    if unknown:
        raise SystemExit(f"There is no case {sorted(unknown)[0]!r}; see --list.")
    print("| case | before | wanted | seconds | processor seconds | peak GiB | exit | longest, s |")
    print("|---|---|---|---|---|---|---|---|")
    for case in CASES:
        if case.name not in asked.cases and (asked.cases or case.large):
            continue
        release = made(case, asked.folder, asked.data)
        done = measured(command(case, release, asked.options), asked.limit)
        figures = f"{done.wall:.1f} | {done.used:.1f} | {done.peak / GIB:.2f} | {done.status}"
        words = f"{case.name} | {case.before} | {case.wanted} | {figures}"
        print(f"| {words} | {longest(case, release, done)} |", flush=True)


if __name__ == "__main__":
    main()
