"""The sentence of a node: what one part says, and each thing once."""

from types import SimpleNamespace

import pytest

from ldpaudit.judging.node_words import Words, sentence_of
from ldpaudit.judging.policy.sections import ClaimSection


def test_a_check_that_only_warns_is_said_once():
    warned = SimpleNamespace(
        id="identifiers", level="warn", verdict="fail", waived=None, reason="dates"
    )
    part = SimpleNamespace(
        verdict="inconclusive",
        checks=(warned,),
        sentence="Inconclusive: too few rows. But a check that only warns failed: dates.",
    )
    words = Words("release", "the 2 releases together", ("a.csv", "b.csv"))
    assert sentence_of("inconclusive", (), (part, part), words, lambda _: None) == (
        "Inconclusive in release 1 (a.csv): too few rows; and in release 2 (b.csv). But a check "
        "that only warns failed in releases 1 and 2: dates."
    )


@pytest.mark.parametrize(
    ("verdicts", "end"),
    [
        (("fail", "pass"), "; the audit of column vote fails, too."),
        (("fail", "fail"), "; the audits of columns vote and income fail, too."),
    ],
)
def test_a_column_is_not_said_to_fail_alone(verdicts: tuple[str, ...], end: str) -> None:
    """Noise that goes along with another column's fails there, although the column keeps its ε."""
    check = SimpleNamespace(
        id="claimed-epsilon",
        level="error",
        verdict="fail",
        waived=None,
        reason="they leak more",
        confidence=None,
    )
    parts = tuple(SimpleNamespace(verdict=one, checks=()) for one in verdicts)
    words = Words("column", "the 2 columns together", ("vote", "income"))
    found = sentence_of("fail", (check,), parts, words, lambda _: None)
    assert found == f"Violation found: they leak more{end}"


def test_a_pass_names_the_limit_that_was_judged() -> None:
    check = SimpleNamespace(
        id="claimed-epsilon",
        level="error",
        verdict="pass",
        waived=None,
        observed=3.0,
        limit=3.6,
        confidence=0.95,
        reason="they are not shown to leak more",
    )
    words = Words("release", "the 2 releases together", ("a.csv", "b.csv"))
    claim = ClaimSection(epsilon_total=5).of(everything=True, one_release=False)
    found = sentence_of("pass", (check,), (), words, lambda _: None, claim)
    assert "ε = 3.6 of the 2 releases together (the policy allows 5 in total), nor" in found
