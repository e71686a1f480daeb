"""``ldpaudit declare`` of channels by stratum: the strata's column is named, ε is added up."""

import pytest
from commands.declare.test_declare import _tables as _tables
from commands.declare.test_declare import content, declare
from processes import refused

from ldpaudit.datasets import read_release
from ldpaudit.mechanisms.view import DeclaredCoding


@pytest.mark.parametrize("path", ["t.csv", "t.parquet"])
@pytest.mark.parametrize(
    "words",
    [
        "--label a:rr:epsilon=1 --label b:channel=strata.csv:by=region",
        "--label a:rr:epsilon=1 --label b --channel strata.csv --by region",
    ],
)
def test_options_in_groups_or_words(path, words):
    status, printed = declare(path, *words.split())
    assert (status, "2 private columns" in printed, "north" in printed) == (0, True, True), printed
    assert "ε = 3.07944 nats together" in printed
    labels = content(path)["labels"]
    assert [(one["label"], one.get("by")) for one in labels] == [("a", None), ("b", "region")]
    assert labels[1]["mechanism"]["strata"][1]["value"] == "south"
    column = read_release(path, label="b", coding=DeclaredCoding).release
    assert column.strata is not None
    assert "Nothing was written" in declare(path, *words.split())[1]
    assert "'region'" in declare(path)[1]
    assert "--overwrite replaces it" in refused(
        "declare", path, "--label", "a", "--mechanism", "rr", "--epsilon", "1"
    )
    assert declare(path, "--label", "b", "--overwrite")[0] == 0
    assert [one["label"] for one in content(path)["labels"]] == ["b"]


def test_a_table_of_sdcmicro_names_its_columns_and_strata():
    status, printed = declare("t.csv", "--channel", "long.csv")
    assert (status, "ε = 2.19722 nats together" in printed) == (0, True), printed
    assert [one["label"] for one in content("t.csv")["labels"]] == ["roof_pram", "walls_pram"]
    status, printed = declare("t.parquet", "--label", "walls_pram", "--channel", "long.csv")
    assert status == 0, printed
    # One column without strata is what version 1 holds.
    assert content("t.parquet")["version"] == 2
