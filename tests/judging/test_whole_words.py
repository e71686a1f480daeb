"""The sentence of a whole: what one part says, and each thing once."""

from types import SimpleNamespace

from ldpaudit.judging.whole_words import Words, sentence_of


def test_a_check_that_only_warns_is_said_once():
    warned = SimpleNamespace(
        id="identifiers", level="warn", verdict="fail", waived=None, reason="dates"
    )
    part = SimpleNamespace(
        verdict="inconclusive",
        checks=(warned,),
        sentence="Inconclusive: too few rows. But a check that only warns failed: dates.",
    )
    words = Words("release", "the 2 releases together")
    assert sentence_of("inconclusive", (), (part, part), None, words) == (
        "Inconclusive in release 1: too few rows; and in release 2. But a check that only warns "
        "failed in releases 1 and 2: dates."
    )
