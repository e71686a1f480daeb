"""Every command that writes, with tiny inputs, to be ended by signals."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from killing.running import Command
from releases import table

import ldpaudit

PLAN = """
[[labels]]
label = "label"
mechanism = "rr"
epsilon = 1.0
[[labels]]
label = "town"
mechanism = "rr"
epsilon = 1.0
"""
RANDOMIZER = """
def flip(value, n, rng):
    return [value if kept else "ab"[value == "a"] for kept in rng.random(n) < 0.7]
"""


def write_inputs(folder: Path) -> Path:
    """Write what the commands read."""
    release, truth = table(200)
    pq.write_table(release, folder / "release.parquet")
    pq.write_table(table(200, made=1.5, seed=3)[0], folder / "other.parquet")
    pq.write_table(truth, folder / "truth.parquet")
    data = release.drop_columns("label").replace_schema_metadata({})
    data = data.append_column("label", truth["label"])
    data = data.append_column("person", pa.array(np.random.default_rng(0).permutation(200)))
    pq.write_table(data, folder / "data.parquet")
    pq.write_table(data.drop_columns("person"), folder / "test.parquet")
    (folder / "plan.toml").write_text(PLAN)
    (folder / "channel.csv").write_text("a,b\n0.7,0.3\n0.3,0.7\n")
    (folder / "prior.csv").write_text("label,probability\n0,0.5\n1,0.3\n2,0.2\n")
    (folder / "randomizer.py").write_text(RANDOMIZER)
    result = ldpaudit.audit(release, truth=truth["label"], only=("mechanism",))
    (folder / "a.json").write_text(result.to_json())
    return folder


def _of(
    name: str,
    words: str,
    made: str = "",
    *,
    private: str = "",
    replaces: bool = True,
    grows: str = "",
    again: str = "",
) -> Command:
    """Return a command of words in which ``<x`` is an input and ``>x`` an output."""

    def placed(inputs: Path, out: Path) -> list[str]:
        known: dict[str, Callable[[str], str]] = {
            "<": lambda word: str(inputs / word[1:]),
            ">": lambda word: str(out / word[1:]),
        }
        return [known.get(word[0], str)(word) for word in words.split()]

    return Command(
        name,
        placed,
        tuple(made.split()),
        tuple(private.split()),
        replaces,
        tuple(grows.split()),
        tuple(again.split()),
    )


_RR = "--mechanism rr --epsilon 1"
_DATA = "privatize <data.parquet --drop person"
_FAST = "--only mechanism"
_PAGE = "--json >a.json --html >a.html"
_PAGES = "a.json a.html"
COMMANDS = (
    _of(
        "privatize",
        f"{_DATA} {_RR} -o >r.parquet --secret >s.parquet --overwrite",
        "r.parquet s.parquet",
        private="s.parquet",
    ),
    _of(
        "privatize, CSV",
        f"{_DATA} {_RR} -o >r.csv --secret >s.csv --overwrite",
        "r.csv s.csv r.csv.ldpaudit.json s.csv.ldpaudit.json",
        private="s.csv s.csv.ldpaudit.json",
    ),
    _of(
        "privatize --plan",
        f"{_DATA} --plan <plan.toml -o >r.parquet --secret >s.parquet --overwrite",
        "r.parquet s.parquet",
        private="s.parquet",
    ),
    _of(
        "privatize --joint",
        f"{_DATA} --label label --label town --joint rs-fd "
        "--epsilon 1 -o >r.parquet --secret >s.parquet --overwrite",
        "r.parquet s.parquet",
        private="s.parquet",
    ),
    _of(
        "privatize --remember",
        f"privatize <data.parquet {_RR} --id person --remember >m.parquet -o >r.parquet "
        "--overwrite",
        "r.parquet m.parquet",
        private="m.parquet",
    ),
    _of(
        "declare",
        "declare <release.parquet --mechanism rr --epsilon 1 -o >r.parquet --overwrite",
        "r.parquet",
    ),
    _of("learn", "learn <release.parquet --test <test.parquet --json >a.json", "a.json"),
    _of("describe", "mechanism describe rr --epsilon 1 --classes a,b --json >a.json", "a.json"),
    _of(
        "design",
        "mechanism design --labels 0:2 --prior <prior.csv --epsilon 1 --json >a.json",
        "a.json",
    ),
    _of(
        "compose",
        "mechanism compose rr:epsilon=1 rr:epsilon=2 --classes a,b --json >a.json",
        "a.json",
    ),
    _of("channel", "mechanism channel <channel.csv --json >a.json", "a.json"),
    _of("policy init", "policy init >p.toml", "p.toml", replaces=False),
)
SLOW = (
    _of(
        "run",
        f"run <release.parquet --truth <truth.parquet {_FAST} {_PAGE} --sarif >a.sarif "
        "--junit >a.xml --markdown >a.md",
        f"{_PAGES} a.sarif a.xml a.md",
    ),
    _of("report", "report <a.json --html >a.html --sarif >a.sarif", "a.html a.sarif"),
    _of(
        "compare",
        f"compare <release.parquet <other.parquet --truth <truth.parquet {_FAST} {_PAGE}",
        _PAGES,
    ),
    _of(
        "sweep",
        f"sweep <data.parquet --drop person {_RR} {_FAST} --processes 1 {_PAGE}",
        _PAGES,
    ),
    _of(
        "sweep --out",
        f"sweep <data.parquet --drop person {_RR} {_FAST} --processes 1 --out >kept",
        "",
        replaces=False,
        grows="kept/",
        again="--resume",
    ),
    _of(
        "advise",
        f"advise <test.parquet --policy ldpaudit:default --minutes 0.001 {_PAGE}",
        _PAGES,
    ),
    _of(
        "mechanism audit",
        "mechanism audit randomizer:flip --inputs a,b --samples 2000 --json >a.json",
        "a.json",
    ),
)
