"""No cell may leave an audit but labels, and nothing in it may harm who reads the report."""

import html.parser
import itertools
import json
import re
import shutil
import string
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from other_rows import other_rows
from processes import called

import ldpaudit
from ldpaudit.mechanisms import RandomizedResponse

ROWS = 600


def tokens():
    """Yield words that occur nowhere else."""
    for letters in itertools.product(string.ascii_lowercase, repeat=4):
        yield "qz" + "".join(letters) + "kx"


class Sentinels:
    """A release in which every cell, label, column and folder name is a unique token."""

    def __init__(self, folder):
        self.words = tokens()
        self.given = []
        self.named = set()
        """Classes and columns, which results and messages call by their names."""
        self.folder = folder / self.word() / self.word()
        self.folder.mkdir(parents=True)
        self.classes = (self.word(), self.word())
        rng = np.random.default_rng(0)
        codes = rng.integers(0, 2, ROWS).astype(np.int32)
        released = RandomizedResponse.from_epsilon(self.classes, 1.0).sample(codes, rng)
        # Numbers are tokens too: no digit string of a cell may be printed.
        self.numbers = [f"{value:.9f}" for value in 7e5 + 1e5 * rng.random(ROWS)]
        self.ids = [self.word() for _ in range(ROWS)]
        self.label, self.id = self.word(), self.word()
        columns = {
            self.id: self.ids,
            self.word(): [self.word() for _ in range(ROWS)],
            self.word(): [float(number) for number in self.numbers],
            self.word(): [[float(c), 1.0] for c in codes],
            self.label: [self.classes[code] for code in released],
        }
        true = {self.id: self.ids, self.label: [self.classes[code] for code in codes]}
        self.named = {*columns, *self.classes}
        self.release = self.write("release.parquet", columns)
        self.truth = self.write("truth.parquet", true)

    def word(self):
        word = next(self.words)
        self.given.append(word)
        return word

    def write(self, name, columns):
        path = self.folder / name
        mechanism = {"name": "randomized-response", "classes": self.classes, "epsilon": 1.0}
        content = {"version": 1, "label": self.label, "mechanism": mechanism}
        declared = {"ldpaudit": json.dumps(content)}
        pq.write_table(pa.table(columns).replace_schema_metadata(declared), path)
        return path

    def found_in(self, text):
        numbers = [number for number in self.numbers if number[:9] in text]
        words = set(re.findall("(?=(qz[a-z]{4}kx))", text))
        return [word for word in self.given if word in words - self.named] + numbers


def test_no_token_leaves_the_audit(tmp_path, monkeypatch):
    data = Sentinels(tmp_path)
    # The outputs go elsewhere: the summary names the files that the user asked for.
    formats = ("html", "json", "sarif", "junit", "markdown", "registry")
    outputs = [word for name in formats for word in (f"--{name}", tmp_path / f"a.{name}")]
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("LDPAUDIT_BUDGET", "0.1")
    for more in (("--truth", data.truth, "--id", data.id), ("--drop", data.id)):
        status, printed = called("run", data.release, *more, *outputs)
        assert status in (0, 1, 3), printed
        assert data.found_in(printed.replace(str(tmp_path), "")) == []
        for name in formats:
            assert data.found_in((tmp_path / f"a.{name}").read_text()) == []


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """Return sentinels with further files that commands read, beside the release."""
    data = Sentinels(tmp_path_factory.mktemp("house"))
    columns = pq.read_table(data.release).drop_columns([data.id])
    words, _, lists = (name for name in columns.column_names if name != data.label)
    numeric = columns.drop_columns([words, lists])
    pq.write_table(numeric, data.folder / "numeric.parquet")
    true = pq.read_table(data.truth)[data.label]
    true = numeric.drop_columns([data.label]).append_column(data.label, true)
    pq.write_table(true.replace_schema_metadata({}), data.folder / "true.parquet")
    other_rows(data.folder / "true.parquet", data.label)
    result = ldpaudit.audit(numeric, truth=true[data.label], only=("mechanism",))
    (data.folder / "stored.json").write_text(result.to_json())
    return data


FORMATS = ("html", "json", "sarif", "junit", "markdown", "registry")
FAST = ("--only", "mechanism", "--only", "label-inference")
RR = ("--mechanism", "rr", "--epsilon", "1")
HERE = ("--processes", "1")  # Points are then measured in this process.


def every_command(data, out):
    """Return commands of each kind in each of their formats; what they release is no output."""
    folder, label = data.folder, ("--label", data.label)
    numeric, true = folder / "numeric.parquet", folder / "true.parquet"
    others = folder / "others-true.parquet"
    both = ("--json", out / "a.json", "--html", out / "a.html")
    formats = [word for name in FORMATS for word in (f"--{name}", out / f"a.{name}")]
    secret = ("-o", folder / "new.parquet", "--secret", folder / "aside.parquet", "--overwrite")
    advice = ("--policy", "ldpaudit:strict", "--minutes", "0.001", *both)
    return {
        "run --debug": ("run", numeric, "--truth", true, *FAST, *formats, "--debug"),
        "report": ("report", folder / "stored.json", *formats),
        "compare": ("compare", numeric, numeric, "--truth", true, *FAST[:2], *both),
        "sweep": ("sweep", true, *label, *RR, *FAST[:2], *HERE, "--test-share", "0.2", *both),
        "sweep --out": ("sweep", true, *label, *RR, *FAST[:2], *HERE, "--out", out / "kept", *both),
        "advise": ("advise", true, *label, *advice),
        "learn": ("learn", numeric, "--test", others, "--json", out / "a.json"),
        "privatize": ("privatize", true, *label, *RR, *secret),
        "declare": ("declare", numeric),
        "compose": ("mechanism", "compose", numeric, numeric, "--json", out / "a.json"),
        "no truth --debug": ("run", numeric, "--truth", folder / "none.parquet", "--debug"),
        "no table --debug": ("run", folder / "stored.json", "--debug"),
        "no label --debug": ("privatize", true, *RR, *secret, "--debug"),
        "other rows --debug": ("learn", numeric, "--test", data.truth, "--debug"),
        "taken": ("privatize", true, *label, *RR, *secret[:4]),
    }


COMMANDS = tuple(every_command(SimpleNamespace(folder=Path(), label="", truth=Path()), Path()))


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_tells_a_token(name, house, tmp_path, monkeypatch):
    """In no format, nor in what is kept, nor in the names of temporary files; all are private."""
    out, temporary = tmp_path / "out", tmp_path / "temporary"
    for folder in (out, temporary):
        folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    for variable in ("HOME", "USER", "LOGNAME"):
        monkeypatch.setenv(variable, str(house.folder))
    status, printed = called(*every_command(house, out)[name])
    failing = name.endswith("taken") or name.startswith(("no ", "other "))
    assert (status == 2) == failing, printed
    # What was typed, the terminal repeats: places of outputs, and the release in the next command.
    typed = printed.replace(str(house.folder), "").replace(str(tmp_path), "")
    assert house.found_in(typed) == []
    for path in out.rglob("*"):
        texts = [path.name, "" if path.is_dir() else path.read_bytes().decode("latin-1")]
        # The command that advice holds names the table as it was typed.
        shown = (
            " ".join(texts).replace(str(house.folder), "") if name == "advise" else " ".join(texts)
        )
        assert house.found_in(shown) == [], path.name
    for path in temporary.rglob("*"):
        assert house.found_in(path.name) == []
        assert path.stat().st_mode & 0o077 == 0 or path.parent != temporary


def of_several_columns(data):
    """Return a release of two private columns, one with a channel for each stratum; its truth."""
    columns = pq.read_table(data.release).to_pydict()
    by, other, regions = data.word(), data.word(), (data.word(), data.word())
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, 2, (2, ROWS))
    true = drawn[1] ^ (rng.random(ROWS) < 0.27)  # As ε = 1 has it.
    columns[by] = [regions[code] for code in drawn[0]]
    columns[other] = [data.classes[code] for code in drawn[1]]
    truth = pq.read_table(data.truth).to_pydict()
    truth[other] = [data.classes[code] for code in true]
    one = {"name": "randomized-response", "classes": data.classes, "epsilon": 1.0}
    strata = {"name": "by-stratum", "strata": [{"value": v, "mechanism": one} for v in regions]}
    labels = [
        {"label": data.label, "mechanism": one},
        {"label": other, "by": by, "mechanism": strata},
    ]
    declared = {"ldpaudit": json.dumps({"version": 2, "labels": labels})}
    data.named |= {*columns, *regions}
    places = data.folder / "several.parquet", data.folder / "several-truth.parquet"
    pq.write_table(pa.table(columns).replace_schema_metadata(declared), places[0])
    pq.write_table(pa.table(truth), places[1])
    return places


def test_no_token_of_several_columns_leaves_the_audit(tmp_path, monkeypatch):
    data = Sentinels(tmp_path)
    release, truth = of_several_columns(data)
    formats = ("html", "json", "sarif", "junit", "markdown", "registry")
    outputs = [word for name in formats for word in (f"--{name}", tmp_path / f"a.{name}")]
    monkeypatch.setenv("LDPAUDIT_ONLY", "mechanism person")
    words = ("run", release, "--truth", truth, "--id", data.id)
    status, printed = called(*words, *outputs)
    assert status in (0, 1, 3), printed
    texts = [printed.replace(str(tmp_path), ""), *called("declare", release)[1:]]
    for text in (*texts, *((tmp_path / f"a.{name}").read_text() for name in formats)):
        assert data.found_in(text.replace("several.parquet", "")) == []


def errors(data):
    """Yield commands that fail, each with data that a careless message would repeat."""
    columns = pq.read_table(data.release).to_pydict()
    keys = list(columns)
    cells, numbers = keys[1], keys[2]

    def changed(name, **change):
        new = dict(columns) | change
        return str(data.write(name, new))

    alien = data.word()
    yield ("run", changed("alien.parquet", **{data.label: [alien, *columns[data.label][1:]]}))
    yield ("run", changed("null.parquet", **{data.label: [None, *columns[data.label][1:]]}))
    yield ("run", changed("inf.parquet", **{numbers: [float("inf"), *columns[numbers][1:]]}))
    yield ("run", changed("nested.parquet", **{cells: [{"k": c} for c in columns[cells]]}))
    truth = str(data.write("alien-truth.parquet", {data.label: [alien] * ROWS}))
    yield ("run", str(data.release), "--truth", truth)
    doubled = {data.id: [data.ids[0]] * ROWS, data.label: columns[data.label]}
    twice = str(data.write("twice.parquet", doubled))
    yield ("run", str(data.release), "--truth", twice, "--id", data.id)
    strange = {data.id: [data.word() for _ in range(ROWS)], data.label: columns[data.label]}
    unknown = str(data.write("unknown.parquet", strange))
    yield ("run", str(data.release), "--truth", unknown, "--id", data.id)
    broken = data.folder / "broken.csv"
    broken.write_text(f"label,{data.word()}\n{data.word()},{data.word()},{data.word()}\n")
    yield ("run", str(broken))
    yield ("run", str(data.folder / "nowhere.parquet"))


def test_no_cell_is_in_an_error(tmp_path, monkeypatch):
    data = Sentinels(tmp_path)
    for command in errors(data):
        status, printed = called(*command)
        assert status == 2, (command, printed)
        assert data.found_in(printed) == [], command


HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "\u202eesrever\u2066",
    "{{ 7 * 7 }}{% raw %}",
    "]]></svg><script>",
    "a\x1b[31mred",
    "=1+1",
    "long" * 2500,
]


class Elements(html.parser.HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self):
        super().__init__()
        self.tags = set()
        self.attributes = set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_hostile_names_make_a_correct_and_harmless_report(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    rows, classes = 400, tuple(HOSTILE[:3])
    codes = rng.integers(0, len(classes), rows).astype(np.int32)
    released = RandomizedResponse.from_epsilon(classes, 1.0).sample(codes, rng)
    columns = {name: rng.standard_normal(rows) for name in HOSTILE[1:]}
    columns[HOSTILE[3]] = rng.choice(HOSTILE, rows)
    columns[HOSTILE[0]] = [classes[code] for code in released]
    pq.write_table(pa.table(columns), tmp_path / "release.parquet")
    pq.write_table(pa.table({"label": [classes[c] for c in codes]}), tmp_path / "truth.parquet")
    more = ("--skip", "renyi", "--skip", "instance-loss")
    status, printed = called(
        "run", tmp_path / "release.parquet", "--label", HOSTILE[0],
        "--truth", tmp_path / "truth.parquet", "--epsilon", "1", *more,
    )  # fmt: skip
    assert (status, "\x1b" not in printed) == (0, True), printed
    page = (tmp_path / "release.audit.html").read_text()
    elements = Elements()
    elements.feed(page)
    assert not elements.tags & {"script", "iframe", "object", "embed", "img", "link", "form"}
    assert not any(name.startswith("on") for name in elements.attributes)
    assert len(page.encode()) < 300_000
    assert "&lt;script&gt;" in page
