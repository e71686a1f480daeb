"""What parts of others print is nowhere in an answer on standard output."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from installing import register

HERE = Path(__file__).parent
PLACES = {
    "attack": "Attack",
    "audit": "Audit",
    "reader": "READER",
    "format": "FORMAT",
    "mechanism": "MECHANISM",
}
FEW = ("--only", "label-inference", "--only", "talking", "--only", "mechanism")


@pytest.fixture
def folder(tmp_path, installed, data):
    shutil.copy(HERE / "talking_parts.py", tmp_path)
    parts = {f"ldpaudit.{kind}s": {"talking": f"talking_parts:{x}"} for kind, x in PLACES.items()}
    register(tmp_path, "talking-parts", parts)
    table = pd.read_parquet(data)
    for name in ("r.talk", "t.talk"):
        table.to_csv(tmp_path / name, sep="|", index=False)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("run", "r.talk", "--truth", "t.talk", *FEW, "--json", "-"),
        ("run", "r.talk", "--truth", "t.talk", *FEW, "--json", "-", "--format", "talking=f.txt"),
        ("run", "r.talk", "--only", "mechanism", "--format", "talking=-"),
        ("mechanism", "describe", "talking", "--classes", "a,b,c", "--json", "-"),
        ("report", "stored.json", "--format", "talking=-"),
    ],
)
def test_the_answer_is_what_is_on_standard_output(folder, words):
    claim = ("--mechanism", "talking", "--epsilon", "1") if words[0] == "run" else ()
    claim = ("--epsilon", "1") if words[0] == "mechanism" else claim
    if words[0] == "report":
        stored = ("run", "r.talk", "--only", "mechanism", "--json", "stored.json", "--quiet")
        ran(folder, *stored, "--mechanism", "talking", "--epsilon", "1")
    out, err = ran(folder, *words, *claim)
    assert json.loads(out) is not None
    assert "TALK" not in out
    assert "TALK" in err


def test_nothing_of_it_is_among_the_words(folder):
    words = ("run", "r.talk", "--truth", "t.talk", *FEW, "--quiet")
    out, err = ran(folder, *words, "--mechanism", "talking", "--epsilon", "1")
    spoken = [line for line in out.splitlines() if line != "TALK"]
    assert len(spoken) == 1
    assert "TALK" in err


def ran(folder, *words):
    made = subprocess.run(
        [sys.executable, "-m", "ldpaudit", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), os.environ["PYTHONPATH"]])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode in (0, 1, 3), made.stderr
    return made.stdout, made.stderr
