"""The commands of printed steps are typed as they stand, and do what they say."""

import shlex

import numpy as np
import pandas as pd
import pytest
from processes import called

from ldpaudit.commands.requests import RunRequest
from ldpaudit.commands.run.steps import TypedSteps

ROWS = 600
FAST = ("--only", "mechanism", "--only", "power")


@pytest.fixture
def changed(tmp_path, monkeypatch):
    """A release whose decimal mark no file shows, with a third of its labels set right again."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(7)
    size = [f"{x:.1f}".replace(".", ",") for x in rng.normal(172, 9, ROWS)]
    blood = [f"{x:.1f}".replace(".", ",") if x < 7 else "low" for x in rng.random(ROWS) * 10]
    labels = rng.choice(["no", "yes"], ROWS)
    table = pd.DataFrame({"size, cm": size, "blood": blood, "my label": labels})
    table.to_csv("data.csv", index=False)
    words = ("--label", "my label:rr:epsilon=1", "--decimal", ",")
    assert called("privatize", "data.csv", "-o", "r.csv", "--secret", "t.csv", *words)[0] == 0
    released = pd.read_csv("r.csv", dtype=str)
    released.loc[: ROWS // 3, "my label"] = labels[: ROWS // 3 + 1]
    released.to_csv("r.csv", index=False)
    return tmp_path


def commands(printed):
    """Return the commands of the steps, each as a shell splits it."""
    lines = [line for line in printed.splitlines() if "ldpaudit " in line and "TABLE" not in line]
    return [shlex.split(line.split("ldpaudit ")[1].split(" names the")[0]) for line in lines]


def test_a_step_has_the_options_by_which_the_files_were_read(changed):
    reading = ("--decimal", ",", "--text", "blood", "--label", "my label")
    status, printed = called("run", "r.csv", "--truth", "t.csv", *reading, *FAST)
    assert status == 1
    verify, advise = commands(printed)
    # verify has no --label, and advise has.
    files = ["--decimal", ",", "--text", "blood", "--truth", "t.csv"]
    assert verify == ["verify", "r.csv", *files, "--scores", "ROWS.csv"]
    assert advise == ["advise", "r.csv", "--label", "my label", *files]
    status, said = called(*verify)
    assert (status, "were changed after the noise" in said) == (1, True)
    assert (changed / "ROWS.csv").is_file()
    assert called(*advise, "--minutes", "0.001")[0] == 3


def test_options_are_written_such_that_a_shell_reads_them():
    request = RunRequest(
        release=("my r.csv",),
        truth="t.csv",
        label=('"a:b":rr:epsilon=1',),
        separator="\t",
        header=True,
        missing_values=("k. A.", "-9"),
        id_column="no",
    )
    step = TypedSteps(request).step("Look: ldpaudit advise RELEASE --truth TRUTH")
    words = "--label '\"a:b\"' --separator tab --header --missing-values 'k. A.'"
    assert step == f"Look: ldpaudit advise 'my r.csv' {words} --missing-values -9 --truth t.csv"
    verify = TypedSteps(request).step("ldpaudit verify RELEASE --truth TRUTH says what differs.")
    assert verify.startswith("ldpaudit verify 'my r.csv' --id no --separator tab --header")
    assert TypedSteps(request).step("Give the RELEASE again.") == "Give the RELEASE again."


def test_which_of_several_releases_is_meant_is_left_open():
    request = RunRequest(release=("a.csv", "b.csv"), truth=("s.csv", "t.csv"), decimal=",")
    step = TypedSteps(request).step("ldpaudit verify RELEASE --truth TRUTH says what differs.")
    assert step == "ldpaudit verify RELEASE --decimal , --truth TRUTH says what differs."


@pytest.mark.parametrize("declared", [True, False])
def test_a_release_given_as_its_own_truth_is_no_table_to_advise_on(changed, declared):
    if not declared:
        (changed / "r.csv.ldpaudit.json").unlink()
    claim = () if declared else (":rr:epsilon=1",)
    words = ("--decimal", ",", "--label", "".join(["my label", *claim]), *FAST)
    status, printed = called("run", "r.csv", "--truth", "r.csv", *words)
    assert (status, "was given as the true labels" in printed) == (1, True)
    assert "advise" not in printed
    status, printed = called("run", "r.csv", "--truth", "t.csv", *words)
    assert (status, "ldpaudit advise" in printed) == (1, True)
