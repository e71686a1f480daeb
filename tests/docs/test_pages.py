"""Every page of the documentation runs as printed, in a folder with the examples."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from docs.blocks import EXAMPLES, QUICK, ROOT, blocks, commands, prepare, run_page, unlike
from docs.notebooks import executed, text_of

from ldpaudit.commands.run.work import write_demo

DOCS = ROOT / "docs"
PAGES = {
    page.relative_to(DOCS).as_posix(): page.read_text()
    for page in sorted(DOCS.rglob("*.md"))
    if "reference" not in page.parts
}
COMMAND = re.compile(r"^(\$ |ldpaudit [a-z]|python |pip |dask |import |from )", re.MULTILINE)

JUDGED_BY_LOSS = ("ci.md", "policy.md")
"""Pages whose policy needs the losses; elsewhere they are left out, for speed."""
JUDGED_BY_ATTACKS = ("ci.md", "sweep.md", "tutorial.md")
"""Pages that show what attackers learn; elsewhere that is left out, for speed."""

LONG = (
    *("tutorial.md", "tutorial-agency.md", "advise.md", "sweep.md", "how-to/images.md"),
    *("how-to/wide-tables.md", "how-to/numeric-labels.md", "how-to/models.md"),
)
"""Pages that are run by `make validate`: many audits, a sweep, advice, images or wide tables."""

RELEASE = """
```console
$ ldpaudit privatize patients.csv -o release.parquet --label diagnosis --mechanism rr --epsilon 1 \\
    --secret truth.parquet
```
"""
"""What pages take for granted besides the examples: a release and its true labels."""


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    prepare(folder)
    run_page(RELEASE, folder)
    return folder


def found(text, run):
    """Return the blocks of a page that are run, or those that say why they are not."""
    code = [block for block in blocks(text) if block.language in ("console", "python")]
    return [block for block in code if bool(block.not_run) != run]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(name, marks=pytest.mark.validate if name in LONG else ())
        for name, text in PAGES.items()
        if found(text, run=True)
    ],
)
def test_a_page_runs_as_printed(page, examples, tmp_path, monkeypatch):
    folder = tmp_path / "reader"
    shutil.copytree(examples, folder)
    left = " label-inference" if page not in JUDGED_BY_ATTACKS else ""
    left += " instance-loss" if page not in JUDGED_BY_LOSS else ""
    monkeypatch.setitem(QUICK, "LDPAUDIT_SKIP", QUICK["LDPAUDIT_SKIP"] + left)
    run_page(PAGES[page], folder)


def test_what_is_not_run_is_listed_here():
    left = {name: len(found(text, run=False)) for name, text in PAGES.items()}
    assert {name: count for name, count in left.items() if count} == {
        "ci.md": 1,  # needs Docker
        "how-to/cluster.md": 3,  # needs a scheduler, several machines, Kubernetes
        "open.md": 1,  # waits for somebody to end it
        "selftest.md": 1,  # takes two minutes
    }


def test_every_command_is_in_a_block_that_is_run():
    for name, text in PAGES.items():
        for block in blocks(text):
            if block.language not in ("console", "python"):
                assert not COMMAND.search(block.text), (name, block.line)


def test_every_command_of_the_readme_runs_as_printed(tmp_path, monkeypatch):
    left = " instance-loss label-inference"
    monkeypatch.setitem(QUICK, "LDPAUDIT_SKIP", QUICK["LDPAUDIT_SKIP"] + left)
    prepare(tmp_path)
    write_demo(tmp_path / "ldpaudit-demo", seed=20260101)
    run_page((ROOT / "README.md").read_text(), tmp_path)


def written_by(text):
    """Return the files that the commands of a page make and never replace."""
    ours = re.sub(r"\\\n *", "", text)
    lines = [line for line in ours.splitlines() if line.startswith("$ ldpaudit")]
    made = [
        re.findall(r"(?:-o|--output|--secret)[ =](\S+)", one)
        for one in lines
        if "--overwrite" not in one
    ]
    declared = [re.findall(r"declare (\S+\.csv)", one) for one in lines if "--overwrite" not in one]
    return [
        *(name for names in made for name in names),
        *(f"{name}.ldpaudit.json" for names in declared for name in names),
    ]


def test_the_readme_then_the_tutorial_in_one_folder_replace_nothing():
    """Each makes files that no command replaces: what both made would end the second with 2."""
    made = [*written_by((ROOT / "README.md").read_text()), *written_by(PAGES["tutorial.md"])]
    assert len(made) > 5
    assert len(made) == len({*made})


@pytest.mark.validate
def test_the_readme_then_the_tutorial_run_in_one_folder(tmp_path, monkeypatch):
    monkeypatch.setitem(QUICK, "LDPAUDIT_SKIP", QUICK["LDPAUDIT_SKIP"] + " instance-loss")
    prepare(tmp_path)
    write_demo(tmp_path / "ldpaudit-demo", seed=20260101)
    run_page((ROOT / "README.md").read_text(), tmp_path)
    run_page(PAGES["tutorial.md"], tmp_path)


PAGE = """
<!-- first: echo hidden -->
```console
$ echo one \\
    two
one … two
$ ls nowhere  # exit status 2
```

- indented

  ```python
  x = 1
  ```

<!-- not run: needs a cluster -->
```console
$ rm -r /
```
"""


def test_blocks_are_read_as_meant(tmp_path):
    first, second, third = blocks(PAGE)
    assert first.first == ("echo hidden",)
    assert next(command.words for command in commands(first.text)) == ("echo", "one", "two")
    assert (second.language, second.text) == ("python", "x = 1\n")
    assert third.not_run == "needs a cluster"
    names = {}
    run_page(PAGE, tmp_path, names)
    assert names["x"] == 1
    for wrong in ("```console\n$ echo one\ntwo\n```", "```console\n$ ls nowhere\n```"):
        with pytest.raises(AssertionError):
            run_page(wrong, tmp_path)


def test_words_are_compared_in_order():
    assert unlike("ε = 1.5: No violation … found", "No big violation\nwas found: 7") == ""
    assert unlike("found violation", "violation found") == "violation"


NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
LONG_NOTEBOOKS = {"choose-the-mechanism", "audit-a-release"}
"""Run by `make validate`."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, marks=pytest.mark.validate if p.stem in LONG_NOTEBOOKS else ())
        for p in NOTEBOOKS
    ],
    ids=lambda path: path.stem,
)
def test_a_notebook_runs_and_is_not_stale(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell, made in zip(cells, executed(notebook), strict=True):
        missing = unlike(text_of(cell["outputs"]), text_of(made))
        assert not missing, f"{missing!r}: python tests/docs/notebooks.py {path.name}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_clean(path):
    text = path.read_text(encoding="utf-8")
    assert len(text) < 50_000
    assert "image/" not in text
    assert str(Path.home()) not in text
    notebook = json.loads(text)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))


PAGES_SECURITY_PAGES = ("docs/security.md", "docs/explanation/threat-model.md")
_NAMED = re.compile(r"`((?:tests/[\w/]+\.py)?(?:::\w+)?)`")


def named(text):
    """Yield file and test of each that is named; ``::test`` alone is of the file before it."""
    file = ""
    for found in filter(None, _NAMED.findall(text)):
        place, _, test = found.partition("::")
        file = place or file
        yield ROOT / file, test


@pytest.mark.parametrize("page", PAGES_SECURITY_PAGES)
def test_what_is_named_exists(page):
    every = list(named((ROOT / page).read_text()))
    assert len(every) > 8
    for file, test in every:
        assert file.is_file(), file
        assert not test or re.search(rf"^def {test}\(", file.read_text(), re.MULTILINE), test


PEOPLE = 6000
EPSILON = 0.5
TABLES = {
    "adult": (["age", "education_num", "hours_per_week"], ["income", "sex", "married"]),
    "diabetes130": (
        ["age", "time_in_hospital", "num_medications", "gender"],
        ["readmitted", "change", "diabetesMed"],
    ),
}
"""Public and private columns of each table."""
PAGE_AGENCY_ON_REAL_TABLES = """
```console
$ ldpaudit declare careless.csv --label {0} --label {1} --label {2} --mechanism rr --epsilon 0.5
… declares 3 private columns …
$ ldpaudit run careless.csv --truth 2025.csv --id person --policy agency.toml  # exit status 1
Publish: no. …
Violation found: the 3 columns together claim ε = 1.500, but at least ε = … is certified …
fail claimed-channel: the noise of one column goes along with another's …
$ ldpaudit advise 2025.csv --label {0} --label {1} --label {2} --policy agency.toml \\
    --keep person --minutes 9
Release …
```
"""
RELEASED = """
<!-- with: LDPAUDIT_SEED={year} -->
```console
$ ldpaudit privatize {year}.csv -o {year}.parquet --label {0}:rr:epsilon=0.5 \\
    --label {1}:rr:epsilon=0.5 --label {2}:rr:epsilon=0.5 --keep person --id person \\
    --remember answers.parquet
Releasing all 3 reveals up to ε = 1.5 nats about a person. …
$ ldpaudit run {year}.parquet --truth {year}.csv --id person --policy agency.toml
Publish: yes. …
```
"""
YEARS = """
One of three private columns is audited: nothing is wrong with it, but that is no decision yet.

```console
$ ldpaudit run 2025.parquet 2026.parquet --id person --label {0} --answers remembered \\
    --truth 2025.csv --truth 2026.csv --policy agency.toml
Publish: not yet. …
No violation found: nothing contradicts the claimed ε = 0.500 of the 2 releases together …
```
"""


@pytest.mark.validate
@pytest.mark.real_data
@pytest.mark.parametrize("name", TABLES)
def test_an_agencys_year(name, shared_data, tmp_path):
    public, private = TABLES[name]
    table = pd.read_parquet(shared_data / f"{name}.parquet").sample(PEOPLE, random_state=1)
    table["married"] = table.get("marital_status", pd.Series("", table.index)).str[:7] == "Married"
    table = table[[*public, *private]].astype(dict.fromkeys(private, str))
    table.insert(0, "person", [f"P{number}" for number in range(PEOPLE)])
    table[: PEOPLE * 9 // 10].to_csv(tmp_path / "2025.csv", index=False)
    table[PEOPLE // 10 :].to_csv(tmp_path / "2026.csv", index=False)
    careless(table[: PEOPLE * 9 // 10], private).to_csv(tmp_path / "careless.csv", index=False)
    (tmp_path / "agency.toml").write_text((EXAMPLES / "agency.toml").read_text())
    run_page(PAGE_AGENCY_ON_REAL_TABLES.format(*private), tmp_path)
    for year in (2025, 2026):
        run_page(RELEASED.format(*private, year=year), tmp_path)
    run_page(YEARS.format(*private), tmp_path)


def careless(table, private):
    """Return a table released with one random number for a whole row."""
    rng = np.random.default_rng(1)
    noisy, shared = table.copy(), rng.random(len(table))
    for column in private:
        codes, classes = pd.factorize(table[column], sort=True)
        other = (codes + rng.integers(1, len(classes), len(table))) % len(classes)
        keep = shared < np.exp(EPSILON) / (np.exp(EPSILON) + len(classes) - 1)
        noisy[column] = classes[np.where(keep, codes, other)]
    return noisy
