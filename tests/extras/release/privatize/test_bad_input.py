"""Bad input: one line, exit status 2, and nothing written."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extras.release.privatize.conftest import ROWS, frame, ran
from processes import heed_interrupts, refused

from ldpaudit.extras.release.privatize.request import PrivatizeRequest
from ldpaudit.extras.release.privatize.work import privatize

RR = "--mechanism randomized-response"
ONE = f"{RR} --epsilon 1"
WEEKS = "--label weeks --labels 0:10:1 --epsilon 1"
NOISE = "--label weeks --epsilon 1 --labels"
GAUSS = "--mechanism gaussian-rr --epsilon 1 --experimental --radius"
DOUBLE = "--mechanism double-rr --lambda .3"
MADE = f"{DOUBLE} --generator mixture --synthetic-out"
REV = "--label rev --epsilon 1 --mechanism"
PERSON = "--label label:rr:epsilon=1 --remember memory.parquet --id person"
ELEVEN = "label,probability\n" + "".join(f"{i},{1 / 11}\n" for i in range(11))
"""Options that many cases share."""

TEXTS = {
    "sum.csv": ELEVEN.replace("10,0.0909", "10,0.0809"),
    "negative.csv": "label,probability\n0,-0.5\n1,1.5\n"
    + "".join(f"{i},0\n" for i in range(2, 11)),
    "lacking.csv": "label,probability\n0,0.5\n1,0.5\n",
    "foreign.csv": ELEVEN.replace("y\n", "y\n99,0\n"),
    "words.csv": "label,probability\n0,many\n",
    "headless.csv": "0,0.5\n1,0.5\n",
    "impossible.csv": "label,probability\n0,0.5\n1,0.5\n2,0\n",
    "three.csv": "x,rev\n" + "0,0\n1,1\n2,2\n" * 20,
    "outside.csv": "x,rev\n" + "1,1.5\n2,41\n" * 25,
    "head.csv": "age,diagnosis\n",
    "none.parquet": "",
    "prose.parquet": "words",
    "empty.csv": "",
    "ragged.csv": "a,b\n1\n",
    "there.parquet": "something else",
    "beside.csv.ldpaudit.json": "mine",
}
"""Small files of the world, by their content."""

TABLES = {
    "data": lambda f: f,
    "no-rows": lambda f: f.iloc[:0],
    "missing": lambda f: f.assign(label=[None, None, *f["label"][2:]]),
    "one-class": lambda f: f.assign(label="no"),
    "infinite": lambda f: f.assign(label=[np.inf, *[1.0, 2.0] * 999, 1.0]),
    "nan": lambda f: f.assign(label=[np.nan, *[1.0, 2.0] * 999, 1.0]),
    "continuous": lambda f: f.assign(label=f["x"]),
    "nested": lambda f: f.assign(label=[[1]] * len(f)),
    "copy": lambda f: f.assign(copy=f["label"].str.upper()),
    "lists": lambda f: f.assign(image=[[0.5, 1.0]] * len(f)),
    "few": lambda f: f.iloc[:30].assign(x=7.5),
    "townless": lambda f: f.drop(columns="town"),
    "more": lambda f: f.assign(more=1),
    "other-type": lambda f: f.assign(town=1),
    "fractions": lambda f: f.assign(weeks=0.5),
    "no-yes": lambda f: f[f["label"] != "yes"],
    "maybe": lambda f: f.assign(label=["maybe", *f["label"][1:]]),
    "unlabelled": lambda f: f.drop(columns="label"),
    "times": lambda f: f.assign(label=pd.to_timedelta(f["weeks"], "h")),
    "infinite-label": lambda f: f.assign(label=np.where(f["flag"], np.inf, 1.0)),
    "people": lambda f: f.assign(person=[f"P{i:04d}" for i in range(len(f))]),
    "twice": lambda f: f.assign(person=["P1", "P1", *[f"P{i:04d}" for i in range(2, len(f))]]),
    "nobody": lambda f: f.assign(person=[None, *[f"P{i:04d}" for i in range(1, len(f))]]),
}
"""Tables of the world, by what makes them of the usual one."""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder of files, good and bad; no case may change it."""
    folder = tmp_path_factory.mktemp("world")
    for name, content in TEXTS.items():
        (folder / name).write_text(content)
    for name, change in TABLES.items():
        change(frame(2_000)).to_parquet(folder / f"{name}.parquet", index=False)
    no_rows = pq.read_table(folder / "data.parquet").slice(0, 0)  # pandas would forget the types.
    pq.write_table(no_rows, folder / "no-rows.parquet")
    (folder / "link.parquet").symlink_to(folder / "data.parquet")
    (folder / "hard.parquet").hardlink_to(folder / "data.parquet")
    (folder / "parts").mkdir()
    frame(2_000).to_parquet(folder / "parts" / "one.parquet")
    people, memory = str(folder / "people.parquet"), folder / "memory.parquet"
    options = {"remember": memory, "id_column": "person"}
    privatize(PrivatizeRequest(people, folder / "r0.csv", "rr", epsilon=1.0, **options))
    return folder


CASES = {
    "epsilon 0": (f"{RR} --epsilon 0", "above 0"),
    "epsilon negative": (f"{RR} --epsilon -1", "above 0"),
    "a comma": (f"{RR} --epsilon 0,5", "write a decimal point: 0.5."),
    "a comma of a column": ("--label label:rr:epsilon=0,5", "write a decimal point: 0.5."),
    "a comma of a range": ("--label weeks:laplace:epsilon=1:labels=0:9,5", "point: 9.5."),
    "epsilon infinite": (f"{RR} --epsilon inf", "finite"),
    "epsilon nan": (f"{RR} --epsilon nan", "number"),
    "epsilon beyond floats": (f"{RR} --epsilon 800", "from 1e-06 to 50"),
    "lambda above": (f"{RR} --lambda 1.5", "[0, 1]"),
    "lambda below": (f"{RR} --lambda -0.1", "[0, 1]"),
    "lambda zero": (f"{RR} --lambda 0", "every true label"),
    "both": (f"{RR} --lambda 0.5 --epsilon 1", "not both"),
    "neither": (RR, "--epsilon or --lambda"),
    "foreign option": (f"{ONE} --sigma 2", "does not belong"),
    "foreign option of 0": (f"{ONE} --sigma 0", "does not belong"),
    "unknown mechanism": ("--mechanism magic --epsilon 1", "choose one"),
    "no mechanism": ("--mechanism unknown", "cannot be applied"),
    "seed": (f"{ONE} --seed 3", "--experimental"),
    "negative seed": (f"{ONE} --experimental --seed -3", "negative"),
    "label": (f"{ONE} --label labell", "did you mean '"),
    "drop": (f"{ONE} --drop towm", "did you mean '"),
    "drop a list": (f"{ONE} --drop town,x", "each is named by itself: --drop town --drop x."),
    "text": (f"{ONE} --text towm", "There is no column 'towm' to read as text"),
    "drop the label": (f"{ONE} --drop label", "must not be dropped"),
    "keep nothing": (f"{ONE} --keep nowhere", "nowhere"),
    "keep the label": (f"{ONE} --keep label", "--keep"),
    "keep and drop": (f"{ONE} --keep x --drop x", "--keep"),
    "one class": (f"{ONE} --classes no", "two classes"),
    "classes twice": (f"{ONE} --classes no,no,yes", "distinct"),
    "undeclared class": (f"{ONE} --classes no,yes", "rows hold another"),
    "classes and labels": (f"{ONE} --classes 0,1 --labels 0:1", "both"),
    "words in a range": (f"{ONE} --labels 0:1:1", "must be numbers"),
    "backwards": (f"{NOISE} 9:0 --mechanism laplace", "below"),
    "infinite labels": (f"{NOISE} 0:inf --mechanism laplace", "finite"),
    "outside": (f"{NOISE} 0:9:1 --mechanism exponential", "declared range"),
    "unordered": (
        "--mechanism debiased-rr --label weeks --classes 3,1,2 --epsilon 1",
        "increasing",
    ),
    "no range": ("--mechanism discrete-laplace --label weeks --epsilon 1", "--labels"),
    "no labels": ("--mechanism debiased-rr --label weeks --epsilon 1", "--classes"),
    "no prior": (f"--mechanism rr-top-k {WEEKS}", "--private-prior"),
    "prior takes all": (f"--mechanism rr-top-k {WEEKS} --private-prior 1", "leaves nothing"),
    "prior epsilon": (f"--mechanism rr-top-k {WEEKS} --private-prior 0", "above 0"),
    "prior budget": (f"--mechanism rr-top-k {WEEKS} --private-prior some", "a number, or auto"),
    "no channel": ("--mechanism channel", "--channel"),
    "no synthetic": ("--mechanism double-rr --epsilon 1", "--synthetic"),
    "double lambda 1": ("--mechanism double-rr --lambda 1 --synthetic data.parquet", "nothing"),
    "double lambda 0": ("--mechanism double-rr --lambda 0 --synthetic data.parquet", "every true"),
    "no public": ("--mechanism model-based-rr --epsilon 1", "--public"),
    "model of stages": (
        "--mechanism model-based-rr --stages 2 --epsilon 1 --posterior-out m.csv",
        "with --public",
    ),
    "floor": ("--mechanism model-based-rr --epsilon 1 --public x --floor 0", "above 0"),
    "floor above": ("--mechanism model-based-rr --lambda 1 --public x --floor 0.5", "floor"),
    "no radius": ("--mechanism gaussian-rr --epsilon 1 --sigma 1", "--radius"),
    "sigma 0": (f"{GAUSS} 1 --sigma 0 --delta 1e-5", "sigma"),
    "sigma below": (f"{GAUSS} 1 --sigma -1 --delta 1e-5", "sigma"),
    "delta 0": (f"{GAUSS} 1 --sigma 1 --delta 0", "delta"),
    "delta 1": (f"{GAUSS} 1 --sigma 1 --delta 1", "delta"),
    "radius 0": (f"{GAUSS} 0 --sigma 1 --delta 1e-5", "radius"),
    "no sigma": (f"{GAUSS} 1 --delta 1e-5", "--feature-epsilon"),
    "no delta": (f"{GAUSS} 1 --sigma 1", "--delta"),
    "noise on words": (f"{GAUSS} 50 --sigma 50 --delta 1e-5", "Column 2 of the features"),
    "long rows": (f"{GAUSS} 1 --sigma 1 --delta 1e-5 --drop town", "norm"),
    "two generators": (f"{DOUBLE} --generator mixture --synthetic data.parquet", "not both"),
    "data for no generator": (f"{DOUBLE} --generator-data few.parquet", "come with --generator"),
    "generator of none": (f"{ONE} --generator mixture", "does not belong"),
    "unknown generator": (f"{DOUBLE} --generator magic", "magic"),
    "few rows": (f"{DOUBLE} --generator mixture --generator-data few.parquet", "20 rows"),
    "generator's columns": (
        f"{DOUBLE} --generator mixture --generator-data townless.parquet",
        "column 2 of the data",
    ),
    "generator's output": (
        f"{DOUBLE} --generator mixture --generator-data few.parquet -o few.parquet --overwrite",
        "is an input",
    ),
    "sample of a table": (
        f"{DOUBLE} --synthetic data.parquet --synthetic-out s.csv",
        "with --generator",
    ),
    "sample of none": (f"{ONE} --generator mixture --synthetic-out s.csv", "does not belong"),
    "rows of no sample": (
        f"{DOUBLE} --generator mixture --synthetic-rows 9",
        "with --synthetic-out",
    ),
    "sample of 0": (f"{MADE} s.csv --synthetic-rows 0", "at least 1"),
    "sample of 2": (f"{MADE} s.csv --synthetic-rows 2", "at least 3"),
    "sample as release": (f"{MADE} r.parquet", "two files"),
    "sample as data": (f"{MADE} data.parquet --overwrite", "is an input"),
    "sample's format": (f"{MADE} s.xlsx", ".parquet"),
    "sample's columns": (f"lists.parquet {MADE} s.csv", "Column 6 is of type list"),
    "prior's sum": (f"--mechanism rr-on-bins {WEEKS} --prior sum.csv", "sum to 1"),
    "prior below 0": (f"--mechanism rr-on-bins {WEEKS} --prior negative.csv", "negative"),
    "prior lacks": (f"--mechanism rr-on-bins {WEEKS} --prior lacking.csv", "labels without one: 9"),
    "prior of others": (
        f"--mechanism rr-on-bins {WEEKS} --prior foreign.csv",
        "rows of other labels: 1",
    ),
    "prior of words": (f"--mechanism rr-on-bins {WEEKS} --prior words.csv", "must be numbers"),
    "prior's header": (f"--mechanism rr-on-bins {WEEKS} --prior headless.csv", "header"),
    "impossible labels": (
        f"three.csv {REV} rr-on-bins --labels 0:2:1 --prior impossible.csv",
        "no probability to labels (1) that occur in 20 of 60 rows",
    ),
    "between": (f"outside.csv {REV} discrete-staircase --labels 0:40", "by privatize --round"),
    "rounding of none": (
        f"outside.csv {REV} laplace --labels 0:40 --round unbiased",
        "does not belong",
    ),
    "beyond": (
        f"outside.csv {REV} debiased-rr --labels 0:40 --round unbiased",
        "25 of 50 rows",
    ),
    "no rows": (f"no-rows.parquet {ONE}", "no rows"),
    "missing": (
        f"missing.parquet {ONE} --secret s.csv",
        "; it is missing in 2 of 2,000. --missing drop",
    ),
    "missing numbers": (f"{NOISE} 0:10:1 --mechanism laplace --missing class", "takes numbers"),
    "nan": (f"nan.parquet {ONE}", "; it is missing in 1 of 2,000"),
    "one label": (f"one-class.parquet {ONE}", "two values"),
    "infinite": (f"infinite.parquet {ONE}", "infinite"),
    "continuous": (f"continuous.parquet {ONE}", "different values"),
    "nested": (f"nested.parquet {ONE}", "label must be"),
    "copy": (f"copy.parquet {ONE} --secret s.csv", "Column 7 of 7"),
    "header only": (f"head.csv {ONE} --label diagnosis", "the table no rows"),
    "nowhere": (f"nowhere.parquet {ONE}", "nowhere"),
    "none": (f"none.parquet {ONE} --label a", "none.parquet"),
    "prose": (f"prose.parquet {ONE} --label a", "prose.parquet"),
    "empty": (f"empty.csv {ONE} --label a", "empty.csv"),
    "ragged": (f"ragged.csv {ONE} --label a", "ragged.csv"),
    "there": (f"{ONE} -o there.parquet", "exists already"),
    "secret there": (f"{ONE} --secret there.parquet", "exists already"),
    "declaration there": (f"{ONE} -o beside.csv", "exists already"),
    **{
        f"{what} as {option}": (f"{ONE} {option} {what}.parquet --overwrite", "is an input")
        for what in ("data", "link", "hard")
        for option in ("-o", "--secret")
    },
    "secret as release": (f"{ONE} --secret ./r.parquet", "two files"),
    "no folder": (f"{ONE} -o nowhere/r.parquet", "folder"),
    "a folder": (f"{ONE} -o parts --overwrite", "is a folder"),
    "format": (f"{ONE} -o r.xlsx", ".parquet"),
    "format's columns": (f"lists.parquet {ONE} -o r.csv", "Column 7 is of type list"),
    "into what is read": (f"parts {ONE} -o parts/two.parquet", "folder that is read"),
    "person twice": (f"twice.parquet {PERSON}", "1 of 2,000 rows repeat an id"),
    "nobody": (f"nobody.parquet {PERSON}", "1 of the data have none"),
    "memory of nobody": (f"{ONE} --remember memory.parquet", "must come with --id"),
    "id for nothing": (f"people.parquet {ONE} --id person", "with --remember or --secret"),
    "id absent": (f"people.parquet {PERSON[:-1]}", "did you mean '"),
    "id private": (f"people.parquet {PERSON[:-6]}label", "another column than the private"),
    "other memory": (
        f"people.parquet {PERSON.replace('memory', 'more')}",
        "is none of remembered",
    ),
    "prose memory": (
        f"people.parquet {PERSON.replace('memory', 'prose')}",
        "is none of remembered",
    ),
    "features remembered": (
        f"people.parquet --mechanism dummy-features-rr --lambda .3 {PERSON[27:]}",
        "cannot be remembered",
    ),
}
"""Words, the table first where it is not the usual one, and what the message says."""

BESIDE = {
    "townless": "column 2 of the data's",
    "more": "such as column 7",
    "other-type": "Column 2 of the",
    "fractions": "without a loss",
    "no-yes": "1 have none",
    "maybe": "1 of 2,000 rows",
    "no-rows": "no rows",
    "unlabelled": "must have the label's column",
    "infinite-label": "one of the 3 labels",
    "times": "table: A label must be",
}
"""Tables that cannot go along with the usual one."""
for _name, _word in BESIDE.items():
    for _option in ("double-rr --synthetic", "model-based-rr --public"):
        CASES[f"{_option} {_name}"] = (f"--epsilon 1 --mechanism {_option} {_name}.parquet", _word)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.scanned if case == "copy" else ()) for case in CASES],
)
def test_one_line_and_nothing_written(case, world, monkeypatch):
    monkeypatch.chdir(world)
    text, said = CASES[case]
    words = text.split()
    data = [] if not words[0].startswith("--") else ["data.parquet"]
    out = [] if "-o" in words else ["-o", "r.parquet"]
    assert said in refused("privatize", *data, *words, *out, folder=world)


def test_what_is_there_is_replaced_where_asked(data):
    there = data.with_name("there.parquet")
    there.write_bytes(b"something else")
    assert ran(data, *ONE.split(), "-o", there, "--overwrite")[0] == 0
    assert pq.read_table(there).num_rows == ROWS


def test_damage_found_half_way_leaves_nothing(tmp_path):
    path = tmp_path / "d.parquet"
    table = pa.Table.from_pandas(frame(30_000), preserve_index=False)
    pq.write_table(table, path, row_group_size=1000, write_page_checksum=True, compression="none")
    content = bytearray(path.read_bytes())
    content[-len(content) // 10] ^= 0xFF
    path.write_bytes(content)
    out = ("-o", tmp_path / "r.parquet", "--secret", tmp_path / "s.parquet")
    assert "damaged" in refused("privatize", path, *ONE.split(), *out, folder=tmp_path)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.validate)]
)
def test_an_interruption_leaves_nothing(number, tmp_path):
    path, out = tmp_path / "wide.csv", tmp_path / "out"
    out.mkdir()
    rows = "".join(f"{i % 2},{i}.5,word{i % 7}\n" for i in range(60_000))
    path.write_text("label,x,y\n" + rows)
    words = ("privatize", path, "-o", out / "r.parquet", "--secret", out / "s.parquet")
    command = [sys.executable, "-m", "ldpaudit", *map(str, words), *ONE.split()]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=os.environ, preexec_fn=heed_interrupts
    )
    while "releasing" not in process.stderr.readline():
        pass
    while not list(out.iterdir()) and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    assert err.strip().splitlines()[-1] == "ldpaudit: Interrupted; nothing was written."
    assert list(out.iterdir()) == []
