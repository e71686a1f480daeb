"""A stored result of another command than ``run`` is named where a result is asked for."""

import json

import pytest
from processes import called, refused

CLAIM = ("--mechanism", "rr", "--epsilon", 1)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.csv").write_text("x,label\n" + "1,a\n2,b\n" * 100)
    (tmp_path / "s.csv").write_text("x,label\n" + "1,b\n2,a\n" * 100)
    few = ("--only", "mechanism", "--json")
    words = {
        "compare": ("compare", "r.csv", "s.csv", *CLAIM, *few),
        "mechanism describe": ("mechanism", "describe", *CLAIM[1:], "--classes", "a,b", "--json"),
        "public": ("run", "r.csv", *CLAIM, "--profile", "public", *few),
    }
    for name, asked in words.items():
        status, said = called(*asked, f"{name[:4]}.json")
        assert status in (0, 3), said
    return tmp_path


def test_it_is_named(stored):
    for name in ("compare", "mechanism describe"):
        place = f"{name[:4]}.json"
        assert json.loads((stored / place).read_text())
        for asked in (("report", place), ("compare", place, place)):
            said = refused(*asked, folder=stored)
            line = f"{place!r} is a result of ldpaudit {name}; this takes results of ldpaudit run."
            assert line in said
    assert "is what everybody may see of a result" in refused("report", "publ.json", folder=stored)
