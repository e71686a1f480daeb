"""The scheme to the bit: the vectors of the documentation, and a verifier that shares no code."""

import contextlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from extras.release.privatize.conftest import ran
from pyarrow import csv

from ldpaudit.errors import InputError
from ldpaudit.extras.receipt.secrets import read_secret
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.exact_sampling import uniform_below
from ldpaudit.mechanisms.keyed import BLOCK_ROWS, NoiseKey
from ldpaudit.receipt.commitment import LabelSeal, Secret, Statement

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "receipt.md").read_text(encoding="utf-8")
KEY = NoiseKey(bytes(range(32)))
TRUE = ["a", "b", "c"] * 4


def vectors():
    """Return the values of the page's table, in order."""
    rows = PAGE.split("### Test vectors")[1].splitlines()
    return [re.search(r"`([^`]*)` \|$", row)[1] for row in rows if row.endswith("` |")]


def words(bits, n):
    return " ".join(f"{word:016x}" for word in bits.words(n).tolist())


def test_the_vectors_of_the_page_hold():
    stream = KEY.stream("release", "label")
    later = stream.at(1)
    later.words(3)
    mechanism = RandomizedResponse(("a", "b", "c"), 0.5)
    drawn = mechanism.sample(np.array([0, 1, 2] * 4, dtype=np.int32), stream.at(0))
    texts, numbers = (LabelSeal(KEY, "label", numeric=numeric) for numeric in (False, True))
    texts.add(pa.array(TRUE))
    numbers.add(pa.array([0.5, -0.0, 2.0]))
    stated = (
        b'{"version": 1, "label": "label", "mechanism": {"name": "randomized-response", '
        b'"classes": ["a", "b", "c"], "lambda": 0.5}}'
    )
    assert stated.decode() in PAGE
    commitment = Statement.of(stated, 12, {"label": texts.digest()}).commitment(KEY)
    assert vectors() == [
        words(stream.at(0), 4),
        words(later, 2),
        " ".join("abc"[code] for code in drawn),
        texts.digest(),
        numbers.digest(),
        commitment,
    ]


def test_requests_blocks_columns_and_purposes_have_words_of_their_own():
    found = [
        words(KEY.stream(purpose, column).at(block), 8)
        for purpose in ("release", "rounding", "prior")
        for column in ("", "a", "ab", "b")
        for block in (0, 1, 256)
    ]
    assert len(set(found)) == len(found)
    bits = KEY.stream("release", "a").at(0)
    assert words(bits, 8) != words(bits, 8)
    longer = KEY.stream("release", "a").at(0)
    assert words(longer, 9).startswith(words(KEY.stream("release", "a").at(0), 8))


def test_words_are_uniform():
    drawn = KEY.stream("release", "uniform").at(0)
    ones = np.unpackbits(drawn.words(1 << 14).view(np.uint8)).reshape(-1, 64).mean(axis=0)
    # Each mean has a standard deviation of 1/256: 6 of them with probability below 2e-7 for all.
    assert np.abs(ones - 0.5).max() < 6 / 256
    counts = np.bincount(uniform_below(7, 70_000, drawn).astype(int), minlength=7)
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 45  # χ² with 6: below 1e-7.


def test_a_key_shows_itself_nowhere():
    shown = f"{KEY!r} {KEY} {KEY.stream('release', 'a')!r}"
    assert KEY.secret.hex() not in shown
    assert repr(KEY.secret)[2:-1] not in shown
    assert NoiseKey.drawn() != NoiseKey.drawn()


@pytest.mark.parametrize("rows", [60, BLOCK_ROWS + 60])
def test_sixty_lines_of_others_find_the_same(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = ROOT / "examples" / "verify.py"
    lines = script.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 60
    imported = {
        line.split()[1].split(".")[0] for line in lines if line.startswith(("import", "from"))
    }
    assert imported - {"numpy"} <= sys.stdlib_module_names
    labels = np.random.default_rng(1).choice(["a", "b,c", "ü"], rows)
    data = pa.table({"x": np.arange(rows) % 11, "label": labels})
    csv.write_csv(data, "data.csv")
    made = ("--mechanism", "rr", "--epsilon", "1", "--secret", "truth.csv")
    assert ran("data.csv", "-o", "release.csv", *made)[0] == 0

    def verified():
        words = [sys.executable, str(script), "release.csv", "truth.csv"]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    found = verified()
    assert (found.returncode, found.stdout) == (
        0,
        f"{rows} of {rows} released labels are as drawn.\n",
    )
    text = Path("release.csv").read_text()
    head, first, rest = text.split("\n", 2)
    other = "5,a" if not first.endswith(",a") else "5,ü"
    Path("release.csv").write_text("\n".join([head, other, rest]))
    assert verified().returncode == 1
    Path("release.csv").write_text(text)
    # A true label that its released one does not depend on is sealed, too.
    truth = Path("truth.csv").read_text()
    for row in range(1, 5) if rows == 60 else ():
        lines = truth.split("\n")
        lines[row] = "a" if lines[row] != "a" else "ü"
        Path("truth.csv").write_text("\n".join(lines))
        assert "not those of this release" in verified().stderr
    Path("truth.csv").write_text(truth)
    # So is every row: none may be left out, doubled or added.
    for changed in (text[: text.rindex("\n", 0, -1) + 1], text + text.split("\n")[-2] + "\n"):
        Path("release.csv").write_text(changed)
        assert verified().returncode == 1
    Path("release.csv").write_text(text)
    assert verified().returncode == 0
    declared = Path("release.csv.ldpaudit.json")
    declared.write_text(declared.read_text().replace('"provenance"', '"remark": 1, "provenance"'))
    assert "not those of this release" in verified().stderr


def test_a_secret_is_read_as_it_was_written_or_not_at_all():
    statement = Statement({"version": 1, "label": "ü"}, 12, {"ü": "00"})
    content = Secret(KEY, statement, "person").content()
    assert read_secret(content) == Secret(KEY, statement, "person")
    assert read_secret(None) is None
    assert read_secret(b'{"version": 1, "label": "x"}') is None
    for place in range(len(content)):
        for bit in (0, 5):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            found = None
            with contextlib.suppress(InputError):
                found = read_secret(bytes(changed))
            # What is left may only be another spelling, an unknown scheme, or the column of ids.
            assert found is None or (found.key, found.statement) == (KEY, statement)
