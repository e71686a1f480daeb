"""Bad words on the command line, and bad documents: one clear line, never an internal fault."""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from processes import called, refused

from ldpaudit.cli.process import quiet_libraries

STORED = Path(__file__).parent.parent / "result" / "stored" / "1.4.json"
RELEASE = "label,x\n" + "a,1\nb,2\n" * 20
PROVENANCE = [
    None,
    {"prior": 10**400, "labels": 1, "total": 2},
    {"prior": 10**299, "labels": 10**299, "total": 2},
]
CHANGED = [
    (("estimates", 0, "count"), [[1]]),
    (("estimates", 0, "n"), {}),
    (("estimates",), [0] * 10_000),
    (("histograms",), [{}]),
    (("run",), None),
]
"""Where somebody changed a stored result, and to what."""
TEXTS = {
    "d.csv": "label\n" + "1\n2\n" * 75,
    "large.csv": "label,probability\na,1e308\nb,1e308\n",
    "nan.csv": "label,probability\na,nan\nb,1\n",
    "r.csv": RELEASE,
    "lists.json": "[" * 200_000,
    "objects.json": '{"a": ' * 65 + "1" + "}" * 65,
    "many.json": "[" + "0," * 1_600_000 + "0]",
    "digits.json": f'{{"a": {"1" * 301}}}',
    "infinite.json": '{"a": 1e999}',
    "null.jsonl": "null\n",
    "nulls.jsonl": 'null\n{"label": "a"}\n',
    "odd.jsonl": '{"\x83": 1}\n',
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder of odd files; no command may change it."""
    folder = tmp_path_factory.mktemp("world")
    for name, text in TEXTS.items():
        (folder / name).write_bytes(text.encode("latin-1"))
    mechanism = {"name": "randomized-response", "classes": ["a", "b"], "epsilon": 1.0}
    for number, epsilon in enumerate(PROVENANCE):
        (folder / f"p{number}.csv").write_text(RELEASE)
        content = {"version": 1, "label": "label", "mechanism": mechanism}
        content["provenance"] = {"epsilon": epsilon}
        (folder / f"p{number}.csv.ldpaudit.json").write_text(json.dumps(content))
    for number, ((*path, last), value) in enumerate(CHANGED):
        content = place = json.loads(STORED.read_text())
        for key in path:
            place = place[key]
        place[last] = value
        (folder / f"s{number}.json").write_text(json.dumps(content))
    np.savez(folder / "r.npz", label=np.arange(4), x=np.arange(4))
    for place in (6, 8, 10):  # Version of zip, encryption, compression.
        content = bytearray((folder / "r.npz").read_bytes())
        content[content.index(b"PK\x01\x02") + place] = 99
        (folder / f"z{place}.npz").write_bytes(content)
    return folder


DESCRIBE, BLACK_BOX = "mechanism describe", "mechanism audit nonsense: --inputs="
DESIGN = "mechanism design --labels=0:10:1 --data=d.csv --label=label"
MANY = ",".join(map(str, range(10_001)))
CASES = [
    (f"{DESCRIBE} rr --epsilon=1 --classes=a\nb,c", "on one line"),
    (f"{DESCRIBE} discrete-laplace --epsilon=1e-308 --labels=0:10:1", "from 1e-06 to 50"),
    (f"{DESCRIBE} discrete-staircase --epsilon=5e-324 --labels=0:10:1", "from 1e-06 to 50"),
    (f"{DESCRIBE} staircase --epsilon=710 --labels=0:1", "from 1e-06 to 50 nats"),
    (f"{DESCRIBE} rr --epsilon=700 --classes=a,b", "from 1e-06 to 50 nats"),
    (f"{DESCRIBE} laplace --epsilon=1 --labels=0:1e308:1e307", "-1e.15 to 1e.15"),
    (f"{DESCRIBE} rr --epsilon=1 --labels=0:1e308:1e307", "-1e.15 to 1e.15"),
    (f"{DESCRIBE} laplace --epsilon=1 --labels=0:1e-200", "at least 1e-100"),
    (f"{DESCRIBE} laplace --epsilon=1 --labels=0:1:1e-300", "at least 1e-100"),
    (f"{DESCRIBE} laplace --epsilon=1 --classes=1,2,{'9' * 400}", "labels on a range"),
    (f"{DESCRIBE} rr --epsilon=1 --classes={MANY}", "most 10,000"),
    (f"{DESIGN} --epsilon=1e308 --private-prior=0.5", "from 1e-06 to 50 nats"),
    (f"{DESIGN} --epsilon=1e-308 --private-prior=0.5", "from 1e-06 to 50 nats"),
    (f"{DESIGN} --epsilon=1 --private-prior=1e-17", "from 1e-06 to 50 nats"),
    (f"{DESCRIBE} rr --epsilon=1 --prior=large.csv", "sum to 1"),
    (f"{DESCRIBE} rr --epsilon=1 --prior=nan.csv", "finite"),
    ("run p0.csv --only mechanism", "state epsilon as prior"),
    ("run p1.csv --only mechanism", "valid JSON"),
    ("run p2.csv --only mechanism", "add up to total"),
    *((f"report s{i}.json --markdown r.md", "must be an ldpaudit result") for i in range(5)),
    ("report lists.json", "at most 64 lists"),
    ("report objects.json", "at most 64 lists"),
    ("report many.json", "at most 1,500,000 values"),
    ("report digits.json", "must be an ldpaudit result"),
    ("report infinite.json", "must be an ldpaudit result"),
    (f"{BLACK_BOX}{'[' * 9000}", "at most 64 lists"),
    (f"{BLACK_BOX}[1,{'9' * 5000}]", "must be a JSON list"),
    (f"{BLACK_BOX}[1,NaN]", "must be a JSON list"),
    (f"{BLACK_BOX}{MANY[:4000]}", "at most 1,000 inputs"),
    (f"{BLACK_BOX}1,{'9' * 5000}", "given as MODULE:FUNCTION"),
    (f"{BLACK_BOX}0,1 --epsilon=1e300", "at most 50"),
    (f"{BLACK_BOX}0,1 --samples={2**63}", "at most 1,000,000,000 samples"),
    (f"{BLACK_BOX}0,1 --timeout=1e308", "1,000,000 seconds"),
    (f"{BLACK_BOX}0,1 --timeout=nan", "1,000,000 seconds"),
    (f"sweep r.csv --mechanism=rr --epsilon=1 --repeats={10**19}", "at most 100,000 simulated rel"),
    *((f"declare z{place}.npz", "damaged") for place in (6, 8, 10)),
    *((f"declare {name}.jsonl", "JSON object a line") for name in ("null", "nulls", "odd")),
]


@pytest.mark.parametrize(("words", "message"), CASES, ids=lambda text: text[:60])
def test_bad_words_are_refused_in_one_line_of_a_few_sentences(words, message, world, monkeypatch):
    monkeypatch.chdir(world)
    line = refused(*words.split(" "), folder=world)
    assert re.search(message, line), line
    assert len(line) < 1000
    assert "Internal fault" not in line


def test_a_document_that_is_too_long_is_not_read_to_its_end(tmp_path):
    with (tmp_path / "r.json").open("wb") as long:
        long.truncate(1 << 40)
    assert "at most 32 MiB" in refused("report", tmp_path / "r.json")


def test_the_smallest_probability_of_a_channel_is_one(tmp_path):
    file = tmp_path / "channel.csv"
    file.write_text("label,a,b\nx,5e-324,1\ny,1,5e-324\n")
    status, printed = called("mechanism", "channel", file)
    assert (status, "ε = 744.44 nats (exact)" in printed) == (0, True), printed
    assert "Warning" not in printed


def test_a_policy_says_whether_any_check_can_fail(tmp_path):
    file = tmp_path / "p.toml"
    weak = "[checks.label-inference-advantage]\nmax = 1\n[checks.identifiers]\nlevel = 'warn'\n"
    for text, fails in ((weak, False), (f"{weak}[checks.claimed-epsilon]\n", True)):
        file.write_text(f"schema = 1\n{text}")
        status, printed = called("policy", "check", file)
        assert (status, "None of its checks can fail." in printed) == (0, not fails)


def test_warnings_of_libraries_are_not_shown(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        with quiet_libraries(debug=False):
            warnings.warn("numpy has something to say", RuntimeWarning, stacklevel=1)
        assert capsys.readouterr().err == ""
        warnings.simplefilter("error")
        with quiet_libraries(debug=False), pytest.raises(RuntimeWarning):
            warnings.warn("a test is to see it", RuntimeWarning, stacklevel=1)
