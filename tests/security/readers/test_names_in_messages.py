"""No message repeats a cell, nor an error what only a file holds: each of these is a sentinel."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import called

ROWS = 60
SENTINEL = "SENT"
NAMES = re.compile("SENT[a-z]+(?![a-z0-9])")
"""Those of columns and classes: cells and ids end with digits."""
CLASSES = ["SENTno", "SENTyes"]
RR = {"name": "randomized-response", "classes": CLASSES, "epsilon": 1.0}
DECLARED = {"version": 1, "label": "SENTlabel", "mechanism": RR}
PRIVATIZE = ("privatize", "t.parquet", "-o", "new.parquet")
MADE = (*PRIVATIZE, "--label", "{label}", "--mechanism", "rr", "--epsilon", "1")
RUN = ("run", "t.parquet", "--epsilon", "1", "--mechanism", "rr", "--label", "{label}")

Columns = dict[str, Any]


def columns():
    """Return a table whose names, texts and classes are sentinels."""
    rng = np.random.default_rng(0)
    return {
        "SENTage": rng.normal(size=ROWS),
        "SENTtown": [f"SENTtown{i % 7}" for i in range(ROWS)],
        "SENTid": [f"SENTid{i}" for i in range(ROWS)],
        "SENTlabel": [CLASSES[i] for i in rng.integers(0, 2, ROWS)],
    }


def parquet(name, change=lambda c: c, declared=None):
    made = columns()
    changed = change(made)
    table = changed if isinstance(changed, pa.Table) else pa.table(changed or made)
    metadata = {} if declared is None else {"ldpaudit": json.dumps(declared)}
    pq.write_table(table.replace_schema_metadata(metadata), name)


def two_files(change):
    parquet("t.parquet")
    parquet("o.parquet", change)


def with_(**more):
    """Return what puts columns into a table; ``x`` stands for SENTx."""
    return lambda made: made | {f"SENT{name}": values for name, values in more.items()}


def without(*names):
    return lambda made: {key: made[key] for key in made if key not in names}


def text(name, *lines):
    return lambda: Path(name).write_text("\n".join(lines) + "\n")


def frame(name, change=lambda c: c):
    return lambda: parquet(name, change)


NESTED = [{"SENTfield": i} for i in range(ROWS)]
ODD = {
    "infinite": [np.inf] * ROWS,
    "nested": NESTED,
    "ragged": [[1.0], [1.0, 2.0]] * (ROWS // 2),
    "texts in lists": [["SENTa"]] * ROWS,
    "lists of structures": [[one] for one in NESTED],
    "no UTF-8": pa.array([b"SENT\xff"] * ROWS).view(pa.string()),
    "far date": pa.array([3_000_000] * ROWS, pa.int32()).cast(pa.date32()),
    "unknown zone": pa.array([0] * ROWS, pa.timestamp("s", "SENT/Nowhere")),
    "nothing": pa.nulls(ROWS),
    "map": pa.array([[("SENTkey", 1)]] * ROWS, pa.map_(pa.string(), pa.int64())),
}
BESIDE = {
    "no column": without("SENTage"),
    "another type": with_(age=["SENTword"] * ROWS),
    "another label": with_(label=["SENTmaybe"] * ROWS),
    "no label": without("SENTlabel"),
    "repeated ids": with_(id=["SENTid0"] * ROWS),
    "other ids": with_(id=[f"SENTother{i}" for i in range(ROWS)]),
    "missing ids": with_(id=[None] * ROWS),
    "fewer rows": lambda made: pa.table(made).slice(0, ROWS - 1),
    "one more": with_(more=[1] * ROWS),
}
MISSING = ("--drop", "--features", "--truth-column", "--id", "--group", "--slice", "--by")

Case = tuple[Callable[[], Any], tuple[str, ...]]


def cases():
    """Return what is made in the folder, and the command's words, by a name."""
    found = {}
    for option in MISSING:
        found[f"run {option}"] = (frame("t.parquet"), (*RUN, option, "XENTtown"))
    found["run label"] = (frame("t.parquet"), ("run", "t.parquet", "--label", "XENTlabel"))
    for name, values in ODD.items():
        for command in (RUN, MADE):
            for column in ("x", "label", "id"):
                more = ("--id", "{id}") if column == "id" and command == RUN else ()
                key = f"{command[0]} {name} as {column}"
                found[key] = (frame("t.parquet", with_(**{column: values})), (*command, *more))
        gauss = ("--mechanism", "gaussian-rr", "--radius", "50", "--sigma", "1", "--delta", "1e-5")
        found[f"noise on {name}"] = (
            frame("t.parquet", with_(x=values)),
            (*MADE, *gauss, "--experimental", "--drop", "{id}"),
        )
    for option in ("--truth", "--original", "--synthetic", "--test", "--public", "--held-out"):
        for name, change in BESIDE.items():
            both = partial(two_files, change)
            found[f"run {option} {name}"] = (both, (*RUN, option, "o.parquet", "--id", "{id}"))
    for name, change in BESIDE.items():
        both = partial(two_files, change)
        double = ("--mechanism", "double-rr", "--synthetic", "o.parquet")
        found[f"double {name}"] = (both, (*MADE, *double))
        model = ("--mechanism", "model-based-rr", "--public", "o.parquet")
        found[f"model {name}"] = (both, (*MADE, *model))
        found[f"learn {name}"] = (both, ("learn", "t.parquet", "--test", "o.parquet"))
        found[f"compare {name}"] = (both, ("compare", "t.parquet", "o.parquet"))
    found |= declared_cases() | text_cases() | private_cases()
    return found


def declared_cases():
    """Return releases whose declaration does not fit."""
    strata = {"name": "by-stratum", "strata": [{"value": "SENTelsewhere", "mechanism": RR}]}
    other = {**DECLARED, "mechanism": {**RR, "classes": ["SENTa", "SENTb"]}}
    several = [{"label": "SENTlabel", "mechanism": RR}, {"label": "SENTnone", "mechanism": RR}]
    by = [{"label": "SENTlabel", "by": "SENTtown", "mechanism": strata}]
    wrong = {
        "other label": {**DECLARED, "label": "SENTlabl"},
        "other classes": other,
        "several": {"version": 2, "labels": several},
        "other strata": {"version": 2, "labels": by},
        "no strata": {"version": 2, "labels": [{**by[0], "by": "SENTtowm"}]},
        "private strata": {"version": 2, "labels": [{**by[0], "by": "SENTlabel"}]},
        "fields": {**DECLARED, "SENTfield": 1},
        "twice": {**DECLARED, "mechanism": {**RR, "classes": ["SENTa", "SENTa"]}},
    }
    found = {}
    for name, declared in wrong.items():
        make = partial(parquet, "t.parquet", declared=declared)
        for words in (
            ("run", "t.parquet"),
            ("run", "t.parquet", "--label", "x"),
            ("declare", "t.parquet"),
            ("mechanism", "compose", "t.parquet", "t.parquet", "--classes", "a,b"),
            ("learn", "t.parquet", "--test", "t.parquet"),
        ):
            found[f"{' '.join(words)} {name}"] = (make, words)
    return found


def text_cases():
    """Return CSV files without a header, channels and priors that do not fit."""
    rows = [f"SENT{i % 5},SENTno,{i}.5" for i in range(ROWS)]
    bare, table = text("t.csv", *rows), frame("t.parquet")
    short = text("t.csv", "SENTa,SENTb", *rows, "SENTx")
    run = ("run", "t.csv", "--epsilon", "1", "--mechanism", "rr")
    channel = text("m.csv", "label,SENTno,SENTelse", "SENTno,0.5,0.5", "SENTelse,0.5,SENTcell")
    prior = text("p.csv", "label,probability", "SENTno,SENTcell")
    found = {
        "no header": (bare, (*run, "--label", "XENT0")),
        "no header, drop": (bare, (*run, "--label", "SENT0"[1:], "--drop", "XENTno")),
        "no header, privatize": (bare, ("privatize", "t.csv", "-o", "n.csv", *run[2:])),
        "rows of other lengths": (short, (*run, "--label", "x")),
        "channel": (lambda: (table(), channel()), ("mechanism", "channel", "m.csv")),
        "channel of a release": (lambda: (table(), channel()), (*RUN[:2], "--channel", "m.csv")),
        "prior": (
            lambda: (table(), prior()),
            (*MADE[:-4], "--mechanism", "rr-top-k", "--epsilon", "1", "--prior", "p.csv"),
        ),
        "no such file": (table, ("run", "SENTfolder/none.parquet")),
        "output": (table, (*MADE[:3], "SENTfolder/none/new.parquet", *MADE[4:])),
        "page": (table, (*RUN, "--html", "SENTfolder/none/a.html")),
    }
    for name, line in {
        "JSON": '{"SENTa": "SENTb", ',
        "mixed": '{"SENTa": 1}\n{"SENTa": "SENTb"}',
        "nested": '{"SENTlabel": {"SENTa": "SENTb"}}',
    }.items():
        found[f"lines {name}"] = (text("t.jsonl", line), ("run", "t.jsonl", "--label", "XENTa"))
    found["svmlight"] = (text("t.svm", "1 1:SENT"), ("run", "t.svm"))
    return found


def private_cases():
    """Return tables that privatize refuses or warns of, and plans that do not fit."""
    label = columns()["SENTlabel"]
    rng = np.random.default_rng(1)
    near = [
        one if keep else "SENTelse"
        for one, keep in zip(label, rng.random(ROWS) < 0.99, strict=True)
    ]
    telling = {
        "copy": label,
        "list": [[one] for one in label],
        "structure": [{"SENTa": one} for one in label],
        "near copy": near,
        "index": range(ROWS),
        "dates": pd.date_range("2020-01-01", periods=ROWS),
        "free text": [f"SENT lives at number {i} of it" for i in range(ROWS)],
    }
    found = {f"tells {n}": (frame("t.parquet", with_(x=v)), MADE) for n, v in telling.items()}
    for suffix in ("csv", "jsonl"):
        words = (*MADE[:3], f"new.{suffix}", *MADE[4:])
        found[f"to {suffix}"] = (frame("t.parquet", with_(x=NESTED)), words)
    plan = '[[labels]]\nlabel = "XENTlabel"\nmechanism = "rr"\nepsilon = 1\n'
    found["plan"] = (
        lambda: (parquet("t.parquet"), Path("p.toml").write_text(plan)),
        (*PRIVATIZE, "--plan", "p.toml"),
    )
    grid = ("--mechanism", "rr", "--epsilon", "1,2")
    for name, change in {"copy": with_(x=label), "no label": without("SENTlabel")}.items():
        found[f"sweep {name}"] = (frame("t.parquet", change), ("sweep", "t.parquet", *grid))
    advise = ("advise", "t.parquet", "--label", "XENTlabel", "--policy", "ldpaudit:default")
    found["advise"] = (frame("t.parquet"), advise)
    return found


CASES = cases()


@pytest.mark.parametrize("case", CASES)
def test_a_message_tells_nothing_of_a_file(case, tmp_path, monkeypatch):
    make, words = CASES[case]
    folder = tmp_path / "SENTfolder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    make()
    typed = [word.format(label="SENTlabel", id="SENTid") for word in words]
    status, printed = called(*typed, *(("--only", "mechanism") if typed[0] == "run" else ()))
    assert status in (0, 1, 2, 3)
    assert "Internal fault" not in printed
    for word in typed:  # What was typed may be repeated.
        printed = printed.replace(word, "")
    assert "SENTfolder" not in printed
    if status != 2:  # A result calls columns and classes by their names.
        printed = NAMES.sub("", printed)
    if any(word.endswith(".parquet") for word in words):  # Its names are no cells for certain.
        printed = re.sub("did you mean '[^']*'", "", printed)
    assert SENTINEL not in printed, printed
    assert str(tmp_path) not in printed
