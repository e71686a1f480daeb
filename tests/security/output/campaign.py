"""Every system call of every writing command fails, one after the other; what is left is looked at.

``python tests/security/output/campaign.py FOLDER [NAME …]`` prints a table. One process imports
everything, and each case is forked from it: a fraction of a second each.
"""

import atexit
import ctypes
import errno
import importlib
import io
import json
import mmap
import os
import re
import shutil
import subprocess
import sys
import time
import types
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pyarrow.parquet as pq

SOURCE = Path(__file__).with_name("faults.c")
VARIABLE = "FAULTS"
NEVER = 1 << 40
"""A turn that never comes: calls are only counted."""
ONCE = (errno.EIO, errno.ENOSPC, errno.EROFS)
DRAFT = re.compile(r"\..+\.(new|old)\.tmp")
_DRAWN = """<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30">
<text transform="translate(9,20)" fill="black">A chart</text></svg>"""
_LISTING = """
import os, sys
from contextlib import suppress
from pathlib import Path
from ldpaudit.cli import main
listed, commands = Path(sys.argv[1]), sys.argv[2:]
for command in commands:
    sys.argv = ["ldpaudit", *command.split()]
    with suppress(SystemExit):
        main()
listed.write_text("\\n".join(sys.modules))
"""
"""Carries out commands and lists what they imported."""
SECONDS = 300
"""After which a case counts as one that hangs."""


class Orders(ctypes.Structure):
    """What the shim reads and writes; see ``faults.c``."""

    _fields_ = (
        *((name, ctypes.c_long) for name in ("turn", "error", "lasting", "calls", "failed")),
        ("streams", ctypes.c_long),
        ("folder", ctypes.c_char * 4096),
    )


@dataclass(frozen=True)
class Case:
    """A command whose calls fail.

    Attributes
    ----------
    words : str
        Its words, in a folder of its own.
    outputs : str
        The files that it writes, all or none.
    before : tuple of str
        Commands that make its inputs, and what it replaces.
    parts : str
        Folders whose files come one by one.
    status : int
        With which it ends when nothing fails.
    every : int
        Which share of the calls fail: those of a command that starts processes take seconds.
    """

    words: str
    outputs: str
    before: tuple[str, ...] = ()
    parts: str = ""
    status: int = 0
    every: int = 1


_RELEASE = "privatize d.csv --mechanism rr --epsilon 1 --quiet"
_MADE = f"{_RELEASE} -o r.parquet --secret s.parquet"
_TEXT = f"{_RELEASE} -o r.csv --secret s.csv"
_OTHER = f"{_MADE.replace('d.csv', 't.csv')} --overwrite"
_QUICK = "--only mechanism --policy p.toml --quiet"
_RUN = f"run r.parquet --truth s.parquet {_QUICK}"
_REPORTS = "--json a.json --html a.html --junit a.xml --sarif a.sarif --markdown a.md"
_WRITTEN = "a.json a.html a.xml a.sarif a.md"
_PAGES = "--json m.json --html m.html"
_GRID = f"sweep d.csv --mechanism rr --epsilon 1 {_QUICK} --processes 1"
_IDS = f"{_RELEASE} --id x --drop x --remember m"

CASES = {
    "privatize": Case(_MADE, "r.parquet s.parquet"),
    "privatize --overwrite": Case(f"{_MADE} --overwrite", "r.parquet s.parquet", (_OTHER,)),
    "privatize --overwrite, CSV": Case(
        f"{_TEXT} --overwrite",
        "r.csv s.csv r.csv.ldpaudit.json s.csv.ldpaudit.json",
        (_TEXT.replace("d.csv", "t.csv"),),
    ),
    "privatize --remember": Case(
        f"{_IDS} -o r2.parquet --secret s2.csv",
        "r2.parquet s2.csv s2.csv.ldpaudit.json m",
        (f"{_IDS} -o r1.parquet",),
    ),
    "privatize --overwrite, links": Case(
        f"{_RELEASE} -o l.parquet --secret k.parquet --overwrite", "r.parquet s.parquet", (_OTHER,)
    ),
    "run": Case(f"{_RUN} {_REPORTS}", _WRITTEN, (_MADE,)),
    "run over former reports": Case(
        f"{_RUN} {_REPORTS}", _WRITTEN, (_MADE, f"{_RUN} {_REPORTS} --seed 1")
    ),
    "run --json -": Case(f"{_RUN} --json - --html a.html", "a.html", (_MADE,)),
    "report": Case(
        "report a.json --html b.html --junit b.xml --markdown b.md",
        "b.html b.xml b.md",
        (_MADE, f"{_RUN} --json a.json", "report a.json --html b.html --profile public"),
    ),
    "compare": Case(
        f"compare r.parquet r2.parquet --truth s.parquet {_QUICK} --json c.json --html c.html",
        "c.json c.html",
        (_MADE, f"{_RELEASE} -o r2.parquet"),
        status=3,
    ),
    "declare, Parquet": Case(
        "declare r.parquet --mechanism rr --epsilon 2 --overwrite --quiet", "r.parquet", (_MADE,)
    ),
    "declare, CSV": Case("declare d.csv --mechanism rr --epsilon 2 --quiet", "d.csv.ldpaudit.json"),
    "declare -o": Case(
        "declare d.csv --mechanism rr --epsilon 2 --quiet -o e.csv", "e.csv e.csv.ldpaudit.json"
    ),
    "learn": Case("learn r.parquet --test others.csv --json m.json --quiet", "m.json", (_MADE,)),
    "advise": Case(
        f"advise d.csv --label label --policy p.toml --minutes 0.0001 {_PAGES} --quiet",
        "m.json m.html",
        status=3,
    ),
    "policy init": Case("policy init own.toml", "own.toml"),
    "policy check": Case("policy check p.toml", ""),
    "mechanism describe": Case(
        f"mechanism describe rr --epsilon 1 --classes A,B {_PAGES}", "m.json m.html"
    ),
    "mechanism channel": Case(f"mechanism channel c.csv {_PAGES}", "m.json m.html"),
    "mechanism compose": Case(
        f"mechanism compose rr:epsilon=1 rr:epsilon=2 --classes A,B {_PAGES}", "m.json m.html"
    ),
    "mechanism design": Case(
        f"mechanism design --labels 0:4 --prior q.csv --epsilon 1 --quiet {_PAGES}",
        "m.json m.html",
    ),
    "mechanism audit": Case(
        "mechanism audit client.py:respond --inputs 0,1 --samples 2000 --epsilon 2 --quiet "
        "--json m.json",
        "m.json",
        every=2,
    ),
    "sweep": Case(f"{_GRID} {_PAGES}", "m.json m.html", every=3),
    "sweep --out": Case(f"{_GRID} --out points {_PAGES}", "m.json m.html", (), "points", every=3),
}


def write_inputs(folder):
    """Write the inputs of all cases."""
    for name, share, first in (("d.csv", 2, 0), ("t.csv", 3, 0), ("others.csv", 2, 60)):
        rows = [(number, "AB"[number * 7 % 5 < share]) for number in range(first, first + 60)]
        (folder / name).write_text("x,label\n" + "".join(f"{x},{y}\n" for x, y in rows))
    (folder / "c.csv").write_text("A,B\n0.7,0.3\n0.3,0.7\n")
    (folder / "q.csv").write_text("label,probability\n" + "".join(f"{n},0.2\n" for n in range(5)))
    (folder / "p.toml").write_text('schema = 1\n\n[checks."claimed-epsilon"]\n')
    (folder / "client.py").write_text(
        "def respond(value, n, rng):\n    return (rng.random(n) < 0.6) == bool(int(value))\n"
    )
    (folder / "l.parquet").symlink_to("r.parquet")
    (folder / "k.parquet").symlink_to("s.parquet")


@dataclass
class Ended:
    """How a command ended, in its folder."""

    status: int
    out: str
    err: str
    calls: int
    before: dict[str, bytes]
    files: dict[str, bytes]
    replaced: set[str]
    """The names that are other files than before, be their content the same."""


@dataclass
class Tally:
    """What came of a case."""

    points: int = 0
    unharmed: int = 0
    """Points at which the work was done all the same."""
    refused: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Campaign:
    """Runs cases in forked processes; the shim must have been loaded before this one.

    Parameters
    ----------
    folder : Path
        For everything that is written.
    """

    def __init__(self, folder):
        self._home = folder.resolve()
        self._temporary = self._home / "tmp"
        with Path(os.environ[VARIABLE]).open("r+b") as file:
            self._orders = Orders.from_buffer(mmap.mmap(file.fileno(), 0))

    def tally(self, name, case):
        """Let every call of a case fail: once, once interrupted, and from then on."""
        began, tally = time.monotonic(), Tally()
        start = self._prepared(name, case)
        plain = self._run(start, case, NEVER, errno.EIO)
        if plain.status != case.status or not plain.calls:
            tally.wrong.append(f"nothing failed, yet {plain.status}: {plain.err}")
            return tally
        for lasting in (False, True):
            for turn in range(1, plain.calls + 1, case.every):
                error = ONCE[turn % 3]
                self._point(tally, start, case, turn, error, lasting, plain.err)
        for turn in range(1, plain.calls + 1, 3 * case.every):
            self._point(tally, start, case, turn, errno.EINTR, False, plain.err)
        tally.seconds = time.monotonic() - began
        return tally

    def _point(self, tally, start, case, turn, error, lasting, usual):
        ended = self._run(start, case, turn, error, lasting)
        ended.err = ended.err.removeprefix(usual)
        tally.points += 1
        tally.unharmed += ended.status == case.status
        tally.refused += ended.status == 2
        if found := ", ".join(faults(case, ended, lasting)):
            what = f"{errno.errorcode[error]}{' from' if lasting else ' at'} call {turn}"
            tally.wrong.append(f"{what}: {found} | {ended.status} {ended.err!r}")

    def _prepared(self, name, case):
        """Return a folder with everything that is there before the command."""
        place = self._home / re.sub(r"\W+", "-", name)
        place.mkdir()
        write_inputs(place)
        for words in case.before:
            ended = self._forked(place, words, NEVER, errno.EIO, False)
            assert ended.status in (0, 3), (words, ended.status, ended.err)
        return place

    def _run(self, start, case, turn, error, lasting=False):
        folder = self._home / "now"
        shutil.copytree(start, folder, symlinks=True)
        try:
            return self._forked(folder, case.words, turn, error, lasting)
        finally:
            shutil.rmtree(folder)

    def _forked(self, folder, words, turn, error, lasting):
        self._temporary.mkdir()
        before = _files(folder)
        texts = [self._home / "out", self._home / "err"]
        child = os.fork()
        if not child:
            self._become(folder, words, texts, turn, error, lasting)
        status = _waited(child)
        self._orders.turn = 0
        files = _files(folder)
        shutil.rmtree(self._temporary, ignore_errors=True)
        out, err = (path.read_text(errors="replace") for path in texts)
        contents = [
            {name: content for name, (_, content) in one.items()} for one in (before, files)
        ]
        replaced = {name for name in files if files[name][0] != before.get(name, (0, b""))[0]}
        return Ended(status, out, err, self._orders.calls, *contents, replaced)

    def _become(self, folder, words, texts, turn, error, lasting):
        """Carry out a command in this process, which then ends."""
        from ldpaudit import cli
        from ldpaudit.work.interruption import heeded

        os.chdir(folder)
        os.environ["TMPDIR"] = str(self._temporary)
        for number, path in enumerate(texts, 1):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(descriptor, number)
            os.close(descriptor)
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.FileIO(number, "w"), "utf-8", line_buffering=number == 2)
            for number in (1, 2)
        )
        sys.argv = ["ldpaudit", *words.split()]
        orders, status = self._orders, 70
        orders.calls = orders.failed = 0
        orders.error, orders.lasting, orders.streams = error, lasting, 1
        orders.folder, orders.turn = str(self._home).encode(), turn
        try:
            with heeded():
                cli.main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 0
        except BaseException:
            status = 71
        finally:
            orders.turn = NEVER
            atexit._run_exitfuncs()  # joblib takes its folders away there.
            os._exit(status)


def _waited(child):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return 124


def _files(folder):
    """Return the files of a folder: which one it is, and what it holds; a link is what it names."""
    return {
        path.name: (0, bytes(path.readlink()))
        if path.is_symlink()
        else (path.stat().st_ino, path.read_bytes())
        for path in folder.iterdir()
        if path.is_symlink() or path.is_file()
    }


def faults(case, ended, lasting):
    """Yield what is wrong with how a command ended."""
    outputs, before = case.outputs.split(), ended.before
    if ended.status not in (case.status, 2):
        yield f"status {ended.status}"
    if re.search("Traceback|Internal fault|Warning", ended.err):
        yield "a fault is shown"
    refused = ended.status == 2
    if not lasting and len(ended.err.splitlines()) > 1:
        yield "more than one line"
    new = {name for name in outputs if name in ended.replaced or name not in ended.files}
    new -= {name for name in new if name not in before and name not in ended.files}
    if refused:
        for name in sorted(n for n in new if ended.files.get(n) != before.get(n)):
            yield from _not_undone(name, before.get(name), ended, lasting)
    else:
        yield from (f"{name} is as before" for name in outputs if name not in new)
        for name in outputs:
            with suppress(Exception):
                _check_whole(name, ended.files[name])
                continue
            yield f"{name} is broken"
    for name in ended.files.keys() - before.keys() - set(outputs):
        told = name in ended.err or "be removed" in ended.err or not ended.err
        if not (DRAFT.fullmatch(name) and lasting and told):
            yield f"{name} is left"
    for name in before.keys() - set(outputs):
        if ended.files.get(name) != before[name]:
            yield f"{name} is changed"


def _not_undone(name, former, ended, lasting):
    """Yield what is wrong with a file that a command which failed has not put back."""
    if not lasting:
        yield f"{name} is not as before"
        return
    kept = former is None or any(
        content == former for other, content in ended.files.items() if other in ended.err
    )
    told = f"'{name}' be taken back" in ended.err or not ended.err
    if not kept and ended.err:
        yield f"the former {name} is lost"
    if former is not None and former not in ended.files.values():
        yield f"the former {name} is nowhere"
    if not told:
        yield f"{name} is new, and nothing says so"


def _check_whole(name, content):
    if name.endswith(".parquet") or name == "m":
        pq.read_table(io.BytesIO(content))
    elif name.endswith((".json", ".sarif")):
        json.loads(content)
    elif name.endswith(".html"):
        assert content.rstrip().endswith(b"</html>")
    else:
        assert content.endswith(b"\n") or name.endswith(".xml")


def prepare(folder):
    """Compile the shim; return the environment of a process that it is loaded into."""
    place, orders = folder / "faults.so", folder / "orders"
    words = ["cc", "-O1", "-shared", "-fPIC", "-o", str(place), str(SOURCE), "-ldl"]
    subprocess.run(words, check=True, capture_output=True)
    orders.write_bytes(bytes(ctypes.sizeof(Orders)))
    return os.environ | {"LD_PRELOAD": str(place), VARIABLE: str(orders)}


def import_everything(folder, names):
    """Import what the cases import, here and not in each of the processes that are forked."""
    listed, place = folder / "modules", folder / "first"
    place.mkdir()
    write_inputs(place)
    words = [words for name in names for words in (*CASES[name].before, CASES[name].words)]
    subprocess.run(
        [sys.executable, "-c", _LISTING, str(listed), *words],
        cwd=place,
        capture_output=True,
        check=True,
    )
    # Charts take seconds to draw, and nothing is written for them.
    drawn = types.SimpleNamespace(vegalite_to_svg=lambda *_, **__: _DRAWN)
    sys.modules["vl_convert"] = cast(types.ModuleType, drawn)
    for module in dict.fromkeys(listed.read_text().split()):
        if not module.startswith("__"):
            with suppress(Exception):
                importlib.import_module(module)


def main(folder, names):
    """Carry out a campaign, in a process with the shim; return how many points went wrong."""
    if VARIABLE not in os.environ:
        folder.mkdir(parents=True, exist_ok=True)
        words = [sys.executable, __file__, str(folder), *names]
        return subprocess.run(words, env=prepare(folder), check=False).returncode
    names = names or list(CASES)
    import_everything(folder, names)
    campaign, total = Campaign(folder), Tally()
    sys.stdout.write("| command | points | work done | refused | wrong | seconds |\n")
    for name in names:
        tally = campaign.tally(name, CASES[name])
        shares = (tally.points, tally.unharmed, tally.refused, len(tally.wrong))
        cells = " | ".join(map(str, shares))
        sys.stdout.write(f"| `{name}` | {cells} | {tally.seconds:.0f} |\n")
        sys.stdout.writelines(f"    {line}\n" for line in tally.wrong[:12])
        sys.stdout.flush()
        total.points += tally.points
        total.wrong += tally.wrong
    sys.stdout.write(f"| all | {total.points} | | | {len(total.wrong)} | |\n")
    return min(len(total.wrong), 100)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
