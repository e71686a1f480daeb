"""No digest of true labels is in anything that a command leaves behind.

Somebody who knows all labels but one could test guesses of that one against a digest of all.
"""

import base64
import hashlib
import json
import shutil
import stat
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from other_rows import other_rows

Command = Callable[..., tuple[int, str, str]]

ROWS = 400
FUNCTIONS = (
    "md5",
    "sha1",
    "sha224",
    "sha256",
    "sha384",
    "sha512",
    "sha3_256",
    "blake2b",
    "blake2s",
)
DIGITS = 12
"""Of a digest in hexadecimal: how many are looked for. A seed may be made of so many."""
LABEL, DROPPED, PERSON = "condition_x", "remark_x", "person_x"


def contents(labels, files):
    """Yield what somebody who wants a digest of the labels may hash."""
    codes = np.unique(labels, return_inverse=True)[1]
    yield from (file.read_bytes() for file in files)
    for column in (labels, list(map(str, codes))):
        for mark in ("", ",", "\n", "\0", " ", ";", ", "):
            yield from (mark.join(column).encode(), (mark.join(column) + mark).encode())
    for column in (labels, codes.tolist()):
        yield from (json.dumps(column).encode(), repr(column).encode())
        yield json.dumps(column, separators=(",", ":")).encode()
    yield from (codes.astype(kind).tobytes() for kind in ("?", "i1", "i2", "i4", "i8", "f4", "f8"))
    for values in (labels, codes, codes.astype(np.int32)):
        yield b"".join(bytes(part) for part in pa.array(values).buffers() if part is not None)
    yield np.array(labels).tobytes()


def traces(labels, files):
    """Return how such digests begin: in bytes, in either case, in base 64, and as numbers."""
    found = set()
    for content in contents(labels, files):
        for name in FUNCTIONS:
            digest = hashlib.new(name, content).digest()
            digits = digest.hex()[:DIGITS]
            found |= {digits.encode(), digits.upper().encode(), digest[: DIGITS // 2]}
            found |= {base64.b64encode(digest)[:DIGITS], str(int(digits, 16)).encode()}
            found.add(hashlib.new(name, digest.hex().encode()).hexdigest()[:DIGITS].encode())
    return found


class House:
    """A folder with true labels, where every command is run; nothing that it makes is removed."""

    def __init__(self, folder):
        rng = np.random.default_rng(3)
        self.folder = folder
        codes = rng.integers(0, 2, ROWS)
        names = np.array(["healthy", "ill"])
        self.labels = names[codes].tolist()
        noisy = names[np.where(rng.random(ROWS) < 0.3, 1 - codes, codes)].tolist()
        features = {"age": rng.normal(50 + 9 * codes, 9), "weight": rng.normal(70, 9, ROWS)}
        people = {PERSON: rng.permutation(ROWS), DROPPED: [f"note {n % 7}" for n in range(ROWS)]}
        self.table = self.write("table", features | people | {LABEL: self.labels})
        self.plain = self.write("plain", features | {LABEL: self.labels})
        self.truth = self.write("truth", {LABEL: self.labels})
        self.release = self.write("release", features | {LABEL: noisy})
        self.both = self.write("both", features | {LABEL: noisy, "truth": self.labels})
        self.traces = traces(self.labels, [self.table, self.plain, self.truth, self.both])

    def write(self, name, columns):
        path = self.folder / f"{name}.parquet"
        pq.write_table(pa.table(columns), path)
        return path


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    return House(tmp_path_factory.mktemp("house"))


@pytest.fixture
def out(tmp_path, monkeypatch):
    """Return the folder of all outputs, temporary files among them, in which nothing is removed."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    return tmp_path


CLAIM = ("--mechanism", "rr", "--lambda", "0.6", "--label", LABEL)
FAST = ("--only", "mechanism", "--only", "label-inference")
HERE = ("--processes", "1")  # Points are then measured in this process.
DROP = ("--drop", DROPPED, "--drop", PERSON)


def words(house, out):
    """Return a command of each kind that reads true labels, or what was made of them."""
    pages = ("--json", out / "result.json", "--html", out / "page.html")
    formats = ("--sarif", out / "a.sarif", "--junit", out / "a.xml", "--markdown", out / "a.md")
    secret = ("--secret", out / "secret.parquet", "-o", out / "new.parquet")
    remember = ("--remember", out / "answers.parquet", "--id", PERSON)
    grid = ("--lambda", "0.6", "--test-share", "0.2", "--out", out / "swept")
    twice = ("--truth", house.truth, "--truth", house.truth)
    truth = ("--truth", house.truth)
    return {
        "run": ("run", house.release, *truth, *CLAIM, *FAST, *pages, *formats),
        "run-column": (
            "run",
            house.both,
            "--truth-column",
            "truth",
            *CLAIM,
            *FAST[:2],
            *pages,
        ),
        "privatize": ("privatize", house.table, *CLAIM, "--drop", DROPPED, *secret, *remember),
        "compare": ("compare", house.release, house.release, *twice[:2], *CLAIM, *FAST[:2], *pages),
        "sweep": (
            "sweep",
            house.table,
            *CLAIM[:2],
            *CLAIM[4:],
            *DROP,
            *FAST[:2],
            *grid,
            *HERE,
            *pages,
        ),
        "learn": (
            *("learn", house.release, "--test", other_rows(house.plain, LABEL)),
            *(*CLAIM, "--json", out / "l.json"),
        ),
        "declare": ("declare", house.release, *CLAIM, "-o", out / "declared.parquet"),
        "advise": (
            *("advise", house.plain, "--label", LABEL, "--policy", "ldpaudit:strict"),
            *("--minutes", "0.001", *pages),
        ),
    }


COMMANDS = ("run", "run-column", "privatize", "compare", "sweep", "learn", "declare", "advise")


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_holds_a_digest_of_true_labels(house, out, command, name):
    status, *printed = command(*words(house, out)[name])
    assert status in (0, 1, 3), printed
    made = [path for path in out.rglob("*") if path.is_file()]
    assert made
    for content in (*(path.read_bytes() for path in made), "".join(printed).encode()):
        assert [trace for trace in house.traces if trace in content] == []


def test_what_is_made_of_private_rows_is_its_owners(house, out, command):
    """Also what shows results: they are as confidential as the true labels."""
    for name in ("run", "privatize", "sweep"):
        assert command(*words(house, out)[name])[0] in (0, 1, 3)
    private = [*(out / "swept").rglob("*")]
    private += [out / "swept", out / "secret.parquet", out / "answers.parquet"]
    private += [*(out / "temporary").rglob("*"), out / "result.json", out / "page.html"]
    assert len(private) > 8
    for path in private:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path.name
