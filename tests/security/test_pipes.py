"""What never answers is not waited for: pipes are refused."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from ldpaudit.work.documents import check_regular

Command = Callable[..., tuple[int, str, str]]
_NO_ANSWER = "a pipe or a device"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"label": ["a", "b"] * 20, "x": range(40)}).to_csv("t.csv", index=False)
    for name in ("p.toml", "p.csv", "p.json", "p.parquet", "p"):
        os.mkfifo(name)
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "run p.csv --epsilon 1",
        "run t.csv --truth p.csv",
        "run t.csv --policy p.toml",
        "run t.csv --channel p.csv",
        "run t.csv --original p.parquet",
        "policy check p.toml",
        "privatize t.csv -o r.csv --plan p.toml",
        "privatize t.csv -o r.csv --label label --mechanism rr --epsilon 1 --remember p --id x",
        "privatize t.csv -o r.csv --label label --mechanism rr-top-k --epsilon 1 --prior p.csv",
        "mechanism channel p.csv",
        "mechanism describe rr --epsilon 1 --prior p.csv --classes a,b",
        "report p.json --html a.html",
        "compare p.json t.csv",
        "learn t.csv --test p.csv --mechanism rr --epsilon 1",
    ],
)
def test_a_pipe_is_refused_and_not_waited_for(place, line, command):
    signal.alarm(60)
    status, _, said = command(*line.split())
    signal.alarm(0)
    assert status == 2
    assert _NO_ANSWER in said or "something that is not a file" in said
    assert len(said.splitlines()) - said.count(" …\n") == 1
    assert not {"r.csv", "a.html"} & {path.name for path in place.iterdir()}


def test_a_device_and_a_pipe_behind_a_link_are_refused(place):
    (place / "link").symlink_to("p")
    for path in (Path("/dev/null"), place / "link"):
        with pytest.raises(OSError, match=_NO_ANSWER):
            check_regular(path)
