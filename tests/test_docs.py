"""The pages of docs/mechanisms: one for each mechanism, no dead link, every example runs."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from ldpaudit import cli
from ldpaudit.mechanisms import names

DOCS = Path(__file__).parent.parent / "docs" / "mechanisms"


def test_every_mechanism_has_a_page_and_a_row():
    index = (DOCS / "README.md").read_text()
    for name in names():
        if name not in ("unknown", "frequency-oracle"):
            assert (DOCS / f"{name}.md").is_file(), name
            assert f"({name}.md)" in index, name


def test_no_link_is_dead():
    for page in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (DOCS / target).exists(), (page.name, target)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_the_examples_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("matrix.csv").write_text("label,low,high\nno,0.75,0.25\nyes,0.25,0.75\n")
    Path("prior.csv").write_text("label,probability\na,0.5\nb,0.3\nc,0.2\n")
    rows = "".join(f"{week},{1 / 53}\n" for week in range(53))
    Path("weeks.csv").write_text(f"label,probability\n{rows}")
    for line in re.findall(r"^\$ (ldpaudit .*)$", page.read_text(), re.MULTILINE):
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert not stopped.value.code, capsys.readouterr().err
