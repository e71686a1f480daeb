"""Attacks on receipts: files cut, swapped and changed, faults of the noise, keys that leak."""

import json
import os
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extras.release.privatize.conftest import ran
from processes import called
from scipy.stats import binom

from ldpaudit.errors import InputError
from ldpaudit.extras.receipt.replay import replay
from ldpaudit.extras.receipt.secrets import read_secret
from ldpaudit.extras.receipt.spelling import spelt_alike
from ldpaudit.extras.release.privatize import work
from ldpaudit.mechanisms.keyed import NoiseKey
from ldpaudit.receipt.commitment import LabelSeal, Statement
from ldpaudit.work.files import PartFile

ROWS = 3000
WORDS = ("--mechanism", "rr", "--epsilon", "1")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A release with three classes, and its key."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.random(ROWS).round(3), "town": rng.choice(["ab", "cd"], ROWS)})
    data["label"] = np.where(data["x"] > 0.4, rng.choice(["a", "b"], ROWS), "c")
    data.to_parquet("data.parquet")
    assert ran("data.parquet", "-o", "r.parquet", "--secret", "t.parquet", *WORDS)[0] == 0
    return tmp_path


def key_of(path):
    secret = read_secret(pq.read_schema(path).metadata[b"ldpaudit"])
    return secret.key.secret


# --- Faults of the noise, put on after ``privatize`` --------------------------------------------


def _mapped(labels, rows, values):
    changed = labels.copy()
    changed[rows] = values
    return changed


def faults():
    """Return by name what each fault makes of released labels, given the true ones and features."""
    each = np.arange(ROWS)
    some = np.random.default_rng(1).random(ROWS)
    shift = {"a": "b", "b": "c", "c": "a"}
    return {
        "no noise": lambda z, y, x: y,
        "true in 1 %": lambda z, y, x: _mapped(z, some < 0.01, y[some < 0.01]),
        "true where rare": lambda z, y, x: _mapped(z, y == "a", "a"),
        "true in a stretch": lambda z, y, x: _mapped(z, each < 30, y[each < 30]),
        "true in every 100th": lambda z, y, x: _mapped(z, each % 100 == 0, y[each % 100 == 0]),
        "true by a feature": lambda z, y, x: _mapped(z, x > 0.98, y[x > 0.98]),
        "one true label": lambda z, y, x: _mapped(z, [np.flatnonzero(z != y)[0]], y[z != y][:1]),
        "a second draw": lambda z, y, x: np.where(some < 0.5, z, np.roll(z, 1)),
        "noise of the row before": lambda z, y, x: _mapped(z, each[1::2], z[0::2]),
        "noise of a household": lambda z, y, x: z[each // 3 * 3],
        "a constant": lambda z, y, x: np.full(ROWS, "b"),
        "a rule on features": lambda z, y, x: _mapped(z, x > 0.9, "a"),
        "classes merged": lambda z, y, x: np.where(z == "c", "b", z),
        "classes shifted": lambda z, y, x: np.array([shift[v] for v in z]),
        "a wrong seed": lambda z, y, x: np.random.default_rng(7).choice(["a", "b", "c"], ROWS),
        "sorted by label": lambda z, y, x: np.sort(z),
        "rows rotated": lambda z, y, x: np.roll(z, 1),
    }


@pytest.mark.parametrize("fault", faults())
def test_seventeen_faults_of_the_noise_are_found(fault, files):
    table, truth = pq.read_table("r.parquet"), pq.read_table("t.parquet")
    released, true = (np.array(t.column("label").to_pylist()) for t in (table, truth))
    x = table.column("x").to_numpy()
    changed = faults()[fault](released, true, x)
    place = table.schema.get_field_index("label")
    pq.write_table(table.set_column(place, "label", pa.array(changed)), "r.parquet")
    found = replay("r.parquet", "t.parquet")
    differ = np.flatnonzero(changed != released)
    assert found.status == "changed"
    assert found.columns[0].places.tolist() == differ.tolist()
    assert found.columns[0].true == (changed == true)[differ].sum()
    status, printed = called("verify", "r.parquet", "--truth", "t.parquet", "--quiet")
    tells = fault.startswith(("no noise", "true"))
    assert status == (1 if tells and len(differ) > 5 else 3), printed


def test_innocent_changes_hardly_ever_accuse():
    """The p-value is valid: labels replaced without a look at the true ones."""
    from ldpaudit.extras.receipt.drawing import Drawn
    from ldpaudit.extras.receipt.replay import Column, _column_replay

    rng, accused = np.random.default_rng(3), 0
    for _ in range(400):
        truth = rng.choice(3, 200, p=[0.6, 0.3, 0.1]).astype(np.int32)
        drawn = np.where(rng.random(200) < 0.5, truth, rng.integers(0, 3, 200)).astype(np.int32)
        # The best blind guess of another label than the drawn one.
        released = np.where(rng.random(200) < 0.2, np.where(drawn == 0, 1, 0), drawn)
        every = np.arange(200)
        column: Column = Column("y", None, pa.chunked_array([[]]))  # type: ignore[arg-type]
        one = Drawn(drawn, truth, ("a", "b", "c"))
        found = _column_replay(column, one, released, drawn, every, every, released == drawn)
        accused += found.p_value <= 0.05
    assert accused <= binom.isf(1e-6, 400, 0.05)


# --- Files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["r.parquet", "t.parquet"])
def test_a_byte_that_is_changed_proves_nothing_else(name, files):
    content, rng = Path(name).read_bytes(), np.random.default_rng(2)
    labels = [
        pq.read_table(one, columns=["label"]).column(0).to_pylist()
        for one in ("r.parquet", "t.parquet")
    ]
    for place in rng.choice(len(content), 150, replace=False):
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(0, 8))
        Path(name).write_bytes(changed)
        try:
            found = replay("r.parquet", "t.parquet")
        except (InputError, pa.ArrowException, OSError, UnicodeDecodeError):
            continue
        if found is not None and found.proven:
            # Then no label was touched, in either file.
            now = [
                pq.read_table(one, columns=["label"]).column(0).to_pylist()
                for one in ("r.parquet", "t.parquet")
            ]
            assert now == labels


TEXT_FILES = ("r.csv", "t.csv", "r.csv.ldpaudit.json", "t.csv.ldpaudit.json")


@pytest.fixture
def text_files(tmp_path, monkeypatch):
    """The same as text files, of sixty rows with ids."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.integers(0, 9, 60), "label": rng.choice(["a", "b", "c"], 60)})
    data["person"] = [f"p{i:02}" for i in range(60)]
    data.to_csv("data.csv", index=False)
    words = ("-o", "r.csv", "--secret", "t.csv", "--label", "label", "--id", "person", *WORDS)
    assert ran("data.csv", *words)[0] == 0
    return tmp_path


def labels_of_text(name):
    """Return the labels of a text file, whatever else it holds."""
    rows = Path(name).read_bytes().decode("latin-1").splitlines()
    place = 1 if name.startswith("r") else 0
    return [row.split(",")[place] for row in rows[1:]]


@pytest.mark.parametrize("name", TEXT_FILES)
@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.validate)])
def test_a_byte_of_a_text_file_that_is_changed_proves_nothing_else(step, name, text_files):
    """Of a declaration no byte may change; of a key only what is not committed to."""
    content = Path(name).read_bytes()
    key = json.loads(Path("t.csv.ldpaudit.json").read_text())["secret"]["key"]
    labels = [labels_of_text(one) for one in TEXT_FILES[:2]]
    # What says how rows are matched, and of which version the file is, is in no commitment.
    free = b'"id": "person"', b'{"version": 1'
    loose = {
        place
        for part in free
        if (start := content.find(part)) >= 0
        for place in range(start, start + len(part))
    }
    for place in range(0, len(content), step):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 7
        Path(name).write_bytes(changed)
        found, said = None, ""
        try:
            found = replay("r.csv", "t.csv")
        except InputError as error:
            said = str(error)
        assert key not in said + repr(found)
        if found is None or not found.proven:
            continue
        if name in TEXT_FILES[:2]:
            assert [labels_of_text(one) for one in TEXT_FILES[:2]] == labels
        else:
            lower = content.lower() == bytes(changed).lower()  # Hexadecimal digits.
            assert name.startswith("t")
            assert lower or place in loose


@pytest.mark.parametrize("name", ["r.parquet", "t.parquet"])
def test_truncated_files_are_no_proof(name, files):
    content = Path(name).read_bytes()
    for size in (0, 4, len(content) // 2, len(content) - 1):
        Path(name).write_bytes(content[:size])
        status, printed = called("verify", "r.parquet", "--truth", "t.parquet")
        assert status == 2, printed
        assert len([line for line in printed.splitlines() if not line.endswith("…")]) == 1


def test_one_label_of_a_million_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = 1_000_000
    rng = np.random.default_rng(0)
    labels = pa.array(rng.integers(0, 3, rows, dtype=np.int8))
    pq.write_table(
        pa.table({"x": pa.array(rng.integers(0, 9, rows)), "label": labels}), "d.parquet"
    )
    assert ran("d.parquet", "-o", "r.parquet", "--secret", "t.parquet", *WORDS)[0] == 0
    table = pq.read_table("r.parquet")
    released = table.column("label").to_numpy().copy()
    for row in rng.choice(rows, 3, replace=False):
        before = released[row]
        released[row] = (before + 1) % 3
        changed = table.set_column(1, "label", pa.array(released))
        found = replay(changed, pq.read_table("t.parquet"))
        assert found.columns[0].places.tolist() == [row]
        released[row] = before
    assert replay(table.set_column(1, "label", pa.array(released)), "t.parquet").proven


@pytest.mark.parametrize(
    "change",
    [
        {"key": "00"},
        {"key": 3},
        {"rows": 10**30},
        {"rows": float("nan")},
        {"labels": []},
        {"declaration": {"a": [[[[]]]]}},
        {"id": ["x"]},
        {"drawn": {"label": "00"}},
        {"drawn": [1]},
        {"repeated": {"label": "zz"}},
        {"repeated": {"label": zlib.compress(bytes(10**7)).hex()}},
        {"repeated": {"label": zlib.compress(b"\xff" * (ROWS // 8)).hex()}},
    ],
    ids=str,
)
def test_junk_with_the_key_is_no_fault_and_hides_no_change(change, files):
    true, table = pq.read_table("t.parquet"), pq.read_table("r.parquet")
    content, key = json.loads(true.schema.metadata[b"ldpaudit"]), key_of("t.parquet").hex()
    content["secret"] |= change
    pq.write_table(true.replace_schema_metadata({"ldpaudit": json.dumps(content)}), "t.parquet")
    place = table.schema.get_field_index("label")
    labels = table.column("label").to_pylist()
    labels[7] = "a" if labels[7] != "a" else "b"
    pq.write_table(table.set_column(place, "label", pa.array(labels)), "r.parquet")
    status, printed = called("verify", "r.parquet", "--truth", "t.parquet", "--quiet")
    assert (status, len(printed.strip().splitlines())) == (3, 1), printed
    assert printed.startswith("Not proven: ")
    assert key not in printed


# --- Keys ---------------------------------------------------------------------------------------


@pytest.fixture
def of_one_key(files, monkeypatch):
    """Another release of the same labels with the same key, at another ε, and its own key file."""
    key = NoiseKey(key_of("t.parquet"))
    with monkeypatch.context() as patch:
        patch.setattr(work.NoiseKey, "drawn", classmethod(lambda _: key))
        words = ("--mechanism", "rr", "--epsilon", "2", "--secret", "t2.parquet")
        assert ran("data.parquet", "-o", "r2.parquet", *words)[0] == 0
    assert replay("r2.parquet", "t2.parquet").proven


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("command", ["run", "compare"])
def test_two_releases_of_one_key_are_refused(command, own, of_one_key):
    """Also where the true labels, with the key, are given with one of them only."""
    truths = ("--truth", "t.parquet", *("--truth", "t2.parquet") * (own and command == "run"))
    words = ("r.parquet", "r2.parquet", *truths, "--quiet", "--only", "mechanism")
    status, printed = called(command, *words)
    assert (status, "drawn from one key" in printed) == (2, True), printed


def test_a_release_of_the_key_of_another_one_is_not_proven(of_one_key):
    found = replay("r2.parquet", "t.parquet")
    assert (found.status, found.columns) == ("foreign", ())
    assert "from the key of another one" in found.reason


def test_no_key_serves_two_releases(files):
    keys = {key_of("t.parquet")}
    for number in range(3):
        words = ("-o", f"r{number}.parquet", "--secret", f"t{number}.parquet", *WORDS)
        assert ran("data.parquet", *words)[0] == 0
        keys.add(key_of(f"t{number}.parquet"))
    assert len(keys) == 4


def test_the_key_is_in_the_file_of_true_labels_alone(files):
    for words in (
        ("run", "r.parquet", "--truth", "t.parquet", "--only", "mechanism", "--html", "a.html",
         "--json", "a.json", "--junit", "a.xml", "--sarif", "a.sarif", "--markdown", "a.md"),
        ("verify", "r.parquet", "--truth", "t.parquet", "--json", "v.json", "--scores", "s.csv"),
        ("run", "t.parquet", "--json", "b.json"),
        ("declare", "t.parquet"),
        ("verify", "t.parquet", "--truth", "r.parquet"),
    ):  # fmt: skip
        printed = called(*words)[1]
        secret = key_of("t.parquet")
        assert secret.hex() not in printed
    for path in files.rglob("*"):
        if path.is_file() and path.name != "t.parquet":
            content = path.read_bytes()
            assert secret not in content, path
            assert secret.hex().encode() not in content, path
    assert Path("t.parquet").stat().st_mode & 0o777 == 0o600
    assert Path("s.csv").stat().st_mode & 0o777 == 0o600  # The rows that were changed.


def test_the_key_beside_a_text_file_is_its_owners(files):
    assert ran("data.parquet", "-o", "r.csv", "--secret", "t.csv", *WORDS)[0] == 0
    for name in ("t.csv", "t.csv.ldpaudit.json"):
        assert Path(name).stat().st_mode & 0o777 == 0o600, name
    assert "key" in json.loads(Path("t.csv.ldpaudit.json").read_text())["secret"]
    status, printed = ran("data.parquet", "-o", "s.csv", "--secret", "t.csv", *WORDS)
    assert status == 2
    assert "exists already" in printed
    # A companion that is there already is not written over either.
    Path("u.csv.ldpaudit.json").write_text("{}")
    assert ran("data.parquet", "-o", "s.csv", "--secret", "u.csv", *WORDS)[0] == 2
    assert not Path("s.csv").exists()


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_run_that_fails_at_the_end_leaves_neither_file(ending, files, monkeypatch):
    def full(*_):
        raise OSError(28, os.strerror(28))

    before = sorted(files.iterdir())
    monkeypatch.setattr(work, "check_unchanged", full)
    assert ran("data.parquet", "-o", f"q.{ending}", "--secret", f"u.{ending}", *WORDS)[0] == 2
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize("stages", [(), ("--stages", "2")])
def test_a_file_that_cannot_take_its_name_takes_the_others_back(stages, turn, files, monkeypatch):
    """With stages the key is written after the release."""
    commit, turns = PartFile.commit, iter(range(4))

    def refused(part):
        if next(turns) == turn:
            raise OSError(28, os.strerror(28))
        commit(part)

    before = sorted(files.iterdir())
    monkeypatch.setattr(PartFile, "commit", refused)
    words = ("--mechanism", "model-based-rr", *stages, "--epsilon", "1") if stages else WORDS
    status, printed = ran("data.parquet", "-o", "q.csv", "--secret", "u.csv", *words)
    assert status == 2, printed
    assert sorted(files.iterdir()) == before


def test_a_commitment_tells_nothing_of_the_labels():
    """Two tables of other labels, a thousand commitments of each: no bit of them differs."""
    declared = b'{"version": 1, "label": "y", "mechanism": {"name": "x", "classes": ["a", "b"]}}'

    def bits(labels):
        key = NoiseKey.drawn()
        seal = LabelSeal(key, "y", numeric=False)
        seal.add(pa.array(labels))
        text = Statement.of(declared, len(labels), {"y": seal.digest()}).commitment(key)
        return np.unpackbits(np.frombuffer(bytes.fromhex(text), dtype=np.uint8))

    ours, theirs = (
        np.array([bits(labels) for _ in range(1000)]) for labels in (["a"] * 50, ["b", "a"] * 25)
    )
    difference = ours.mean(axis=0) - theirs.mean(axis=0)
    # A standard deviation of √(1/2000): 6 of them in one of 256 bits with probability 5e-7.
    assert np.abs(difference).max() < 6 * np.sqrt(1 / 2000)
    # Nor do pairs of bits: half of each learn a direction, which the other half does not follow.
    direction = np.sign(
        difference[:, None] * 0 + ours[:500].T @ ours[:500] - theirs[:500].T @ theirs[:500]
    )
    scores = [
        np.einsum("ni,ij,nj->n", s[500:] - 0.5, direction, s[500:] - 0.5) for s in (ours, theirs)
    ]
    right = (scores[0] > np.median(np.concatenate(scores))).mean()
    assert binom.cdf(500 * right, 500, 0.5) > 1e-7
    assert binom.sf(500 * right, 500, 0.5) > 1e-7


def test_commitments_are_compared_in_constant_time():
    import inspect

    from ldpaudit.extras.receipt import replay, secrets
    from ldpaudit.receipt import commitment

    assert "compare_digest" in inspect.getsource(secrets.equal)
    places = [inspect.getsource(module) for module in (commitment, replay, secrets)]
    assert not any("commitment ==" in text or "commitment !=" in text for text in places)


# --- How a released label is written -------------------------------------------------------------


def _spelt_in_csv(rows, write):
    head, *lines = Path("r.csv").read_text().splitlines()
    place = head.split(",").index("label")
    for row in rows:
        cells = lines[row].split(",")
        cells[place] = write(cells[place])
        lines[row] = ",".join(cells)
    Path("r.csv").write_text("\n".join([head, *lines]) + "\n")


def _spelt_in_json(rows, write):
    lines = [json.loads(line) for line in Path("r.jsonl").read_text().splitlines()]
    for row in rows:
        lines[row]["label"] = float(write(str(lines[row]["label"])))
    Path("r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(
    ("mechanism", "ending", "respelt"),
    [
        ("rr", "csv", _spelt_in_csv),
        ("rr", "jsonl", _spelt_in_json),
        ("discrete-laplace", "csv", _spelt_in_csv),
        ("discrete-laplace", "jsonl", _spelt_in_json),
    ],
)
def test_two_spellings_of_one_label_prove_nothing_and_another_one_throughout_does(
    mechanism, ending, respelt, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    truth = np.random.default_rng(0).integers(1, 4, 300)
    pd.DataFrame({"x": np.arange(300) % 7, "label": truth}).to_csv("data.csv", index=False)
    numbers = ("--labels", "1:3") if mechanism != "rr" else ()
    words = ("--label", "label", "--mechanism", mechanism, "--epsilon", "1", *numbers)
    places = (f"r.{ending}", f"t.{ending}")
    assert ran("data.csv", "-o", places[0], "--secret", places[1], *words)[0] == 0
    before = Path(places[0]).read_bytes()
    assert replay(*places).proven
    respelt(np.flatnonzero(truth == 1), lambda label: f"{label}.0")
    found = replay(*places)
    assert not found.proven
    assert sum(one.rows - one.equal for one in found.columns) >= (truth == 1).sum() / 2
    Path(places[0]).write_bytes(before)
    respelt(np.arange(300), lambda label: f"{label}.0")
    assert replay(*places).proven


def test_numbers_of_which_none_is_left_are_changed():
    assert not spelt_alike(pa.chunked_array([["a", "b", "a"]])).any()


def test_texts_that_write_one_number_are_labels_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    for classes in (["250.0", "250.00", "401.9"], ["1", "1.0", "2"]):
        label = rng.choice(classes, 600)
        pd.DataFrame({"x": rng.integers(0, 9, 600), "label": label}).to_csv("d.csv", index=False)
        words = ("-o", "r.csv", "--secret", "t.csv", "--label", "label", "--overwrite", *WORDS)
        assert ran("d.csv", *words)[0] == 0
        assert replay("r.csv", "t.csv").proven
