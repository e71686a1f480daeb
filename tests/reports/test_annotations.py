"""Workflow commands of GitHub: one line each, nothing that begins another."""

from collections.abc import Callable

from ldpaudit.reports.annotations import annotations
from ldpaudit.reports.interface import Place, Surroundings
from ldpaudit.result import AuditResult

PLACED = Surroundings(places={"claimed-epsilon": Place("a,b:c%.toml", 4)})


def test_a_failed_check_is_an_error_at_its_line(build: Callable[..., AuditResult]) -> None:
    (line,) = annotations(build("fail"), PLACED)  # The other failed one is waived.
    assert line == (
        "::error file=a%2Cb%3Ac%25.toml,line=4,title=ldpaudit%3A claimed-epsilon::"
        "A certified lower bound lies above the claim (1.947 against 1, at 95 %25 "
        "confidence)."
    )


def test_undecided_checks_warn(build: Callable[..., AuditResult]) -> None:
    first = next(annotations(build("inconclusive"), Surroundings()))
    assert first.startswith("::warning file=adult-rr.parquet,line=1,")


def test_each_is_one_line(hostile: AuditResult) -> None:
    for line in annotations(hostile, Surroundings()):
        assert line.isprintable()
        assert line.count("::") == 2 or "::" not in line[2:].partition("::")[2]


def test_without_a_fault_there_is_none(build: Callable[..., AuditResult]) -> None:
    assert not list(annotations(build("pass"), PLACED))
