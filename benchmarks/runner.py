"""Cases are functions that yield tables; this module lists, runs, prints and keeps them.

A case yields texts (paragraphs), :class:`Heads` (a table begins) and tuples (its rows). Its
parameters, all with defaults, are its options; ``@case(rows=100)`` says what is small.
"""

import argparse
import contextlib
import inspect
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import psutil
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
RESULTS = ROOT / "benchmarks" / "results"
LDPAUDIT = (sys.executable, "-c", "from ldpaudit.cli import main; main()")
TESTS = str(ROOT / "tests")

Array = npt.NDArray[Any]
Rng = np.random.Generator
Rows = Iterator[str | tuple[Any, ...]]


class Heads(tuple[str, ...]):
    """The head of a table; a head "seconds|.1f" also says how its column is formatted."""


def heads(*words: str) -> Heads:
    """Begin a table."""
    return Heads(words)


class Case(NamedTuple):
    """A function that yields a table, its small options, and the file that keeps its results."""

    run: Callable[..., Rows]
    small: Mapping[str, Any]
    kept: Path

    @property
    def options(self) -> dict[str, Any]:
        """Its options with their defaults."""
        return {n: p.default for n, p in inspect.signature(self.run).parameters.items()}


CASES: dict[str, Case] = {}


def case(
    results: str = "", /, **small: Any
) -> Callable[[Callable[..., Rows]], Callable[..., Rows]]:
    """List a function as a case, whose results are kept in a file of its own or another name."""

    def listed(run: Callable[..., Rows]) -> Callable[..., Rows]:
        CASES[run.__name__] = Case(run, small, RESULTS / f"{results or run.__name__}.md")
        return run

    return listed


def lines(rows: Rows) -> Iterator[str]:
    """Yield Markdown, line by line."""
    formats: list[str] = []
    for row in rows:
        if isinstance(row, str):
            yield f"\n{row}\n"
        elif isinstance(row, Heads):
            formats = [head.partition("|")[2] for head in row]
            yield f"| {' | '.join(head.partition('|')[0] for head in row)} |"
            yield "|" + "---|" * len(row)
        else:
            cells = [_shown(value, form) for value, form in zip(row, formats, strict=True)]
            yield f"| {' | '.join(cells)} |"


def _shown(value: Any, form: str) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    return format(value, form or ("," if isinstance(value, int | np.integer) else "g"))


def spread(values: Any, form: str = ".2f") -> str:
    """Return mean ± standard deviation."""
    return f"{np.mean(values):{form}} ± {np.std(values):{form}}"


def timed(work: Callable[[], Any], repeats: int = 1) -> tuple[Any, float]:
    """Return what a piece of work returns, and the least processor seconds that it took."""
    best, result = math.inf, None
    for _ in range(repeats):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return result, best


class Ran(NamedTuple):
    """A command that has ended: exit status, processor and wall seconds, GiB, what it said."""

    status: int
    used: float
    wall: float
    peak: float
    said: str


def _started(words: list[str], out: Any, error: Any) -> int:
    process = subprocess.Popen(words, stdout=out, stderr=error)
    # It is waited for by its number.
    process.returncode = 0
    return process.pid


START = _started


def ran(*words: object, limit: float = 3600.0) -> Ran:
    """Run a command to its end or the limit of seconds, and measure it with its children.

    Memory is what /proc says of resident pages, added up over the process and its children fifty
    times a second; what getrusage tells would include this process at the fork.
    """
    start, peak = time.perf_counter(), 0
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as error:
        process = psutil.Process(START(list(map(str, words)), out, error))
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            peak = max(peak, _resident(process))
            if time.perf_counter() - start > limit:
                process.terminate()
            time.sleep(0.02)
        wall, used = time.perf_counter() - start, ended[2].ru_utime + ended[2].ru_stime
        for file in (out, error):
            file.seek(0)
        said = out.read().strip() or error.read().strip()
    return Ran(os.waitstatus_to_exitcode(ended[1]), used, wall, peak / 2**30, said)


def _resident(process: psutil.Process) -> int:
    total = 0
    with contextlib.suppress(psutil.Error):
        for one in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                total += one.memory_info().rss
    return total


def draw(file: str, panels: Sequence[tuple[str, str, str, Mapping[str, Any]]], **more: Any) -> None:
    """Write curves into one SVG file, if one is named: panels of a title, two axes, and lines."""
    if not file:
        return
    import vl_convert

    names = list(dict.fromkeys(name for *_, curves in panels for name in curves))
    scale = {"domain": more["y"]} if "y" in more else {"zero": False}
    color = {"field": "line", "type": "nominal", "scale": {"domain": names}}
    shown = [
        {
            "title": title,
            "width": 330,
            "height": 220,
            "data": {
                "values": [
                    {"x": round(float(at), 5), "y": round(float(value), 5), "line": name}
                    for name, (places, values) in curves.items()
                    for at, value in zip(places, values, strict=True)
                ]
            },
            "mark": {"type": "line", "clip": True},
            "encoding": {
                "x": {"field": "x", "type": "quantitative", "title": x},
                "y": {"field": "y", "type": "quantitative", "title": y, "scale": scale},
                "color": color | {"legend": {"orient": "bottom", "title": None, "columns": 2}},
            },
        }
        for title, x, y, curves in panels
    ]
    picture = {"background": "white", "columns": more.get("columns", 2), "concat": shown}
    # No base URL is allowed: nothing is ever loaded from elsewhere.
    svg = vl_convert.vegalite_to_svg(picture, allowed_base_urls=[])
    Path(file).write_text(svg, encoding="utf-8")


def keep(name: str, text: str) -> None:
    """Put a table between its marks in the case's file of results; new ones come last."""
    file, begin, end = CASES[name].kept, f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    pattern, new = re.escape(begin) + ".*?" + re.escape(end), begin + text + end
    after, found = re.subn(pattern, lambda _: new, before, flags=re.DOTALL)
    file.write_text(after if found else f"{before}\n{new}".lstrip("\n"), encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run a case.")
    names = parser.add_subparsers(dest="name", metavar="NAME")
    for name, one in CASES.items():
        words = (inspect.getdoc(one.run) or "").replace("%", "%%")
        own = names.add_parser(name, help=words.split("\n")[0], description=words)
        own.formatter_class = argparse.RawDescriptionHelpFormatter
        own.add_argument("--small", action="store_true", help="as the tests run it")
        own.add_argument("--write", action="store_true", help=f"keep it in {one.kept.name}")
        for option, value in one.options.items():
            flag = "--" + option.replace("_", "-")
            more: dict[str, Any] = {"type": type(value), "help": f"default: {value}"}
            if isinstance(value, bool):
                more = {"action": "store_true"}
            elif isinstance(value, tuple):
                more |= {"type": type(value[0]) if value else str, "nargs": "*"}
            own.add_argument(flag, default=argparse.SUPPRESS, **more)
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a case by the words of a command; without words list all."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    asked = vars(parser.parse_args(given))
    name = asked.pop("name")
    if name is None:
        parser.print_help()
        return
    small, write = asked.pop("small"), asked.pop("write")
    load, told = os.getloadavg()[0], []
    with threadpool_limits(1):
        for line in lines(CASES[name].run(**{**(CASES[name].small if small else {}), **asked})):
            print(line, flush=True)
            told.append(line)
    words = f"`python -m benchmarks {' '.join(given)}`; {os.cpu_count()} {platform.machine()} cores"
    told.append(f"\n{words}, load {load:.1f}; Python {platform.python_version()}.\n")
    print(told[-1])
    if write:
        keep(name, "\n".join(told))
