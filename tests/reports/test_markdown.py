"""Markdown: the decision first, half a page, and no name becomes markup."""

from collections.abc import Callable

import pytest
from markdown_it import MarkdownIt

from ldpaudit.reports import render
from ldpaudit.reports.text.marked import marked, quoted_name
from ldpaudit.result import AuditResult

READER = MarkdownIt("commonmark", {"html": True}).enable("table")


def test_it_is_short_and_says_what_matters(any_result: AuditResult) -> None:
    text = render(any_result, "markdown")
    assert len(text.splitlines()) < 60
    lines = [line for line in text.splitlines() if line]
    assert lines[0].startswith("*As confidential" if any_result.confidential else "*Made without")
    assert lines[1].startswith("## Privacy audit of `` ")
    assert lines[2].startswith("**Publish: ")
    page = READER.render(text)
    for check in any_result.checks:
        assert f"<code>{check.id}</code>" in page


def test_numbers_stand_beside_what_the_features_tell(build: Callable[..., AuditResult]) -> None:
    page = READER.render(render(build("fail"), "markdown"))
    attack = page.index("Strongest attack: labels guessed right")
    alone = page.index("The features alone: labels guessed right")
    assert attack < alone
    assert "≥ 1.947" in page
    assert "<strong>failed</strong>, waived until 2030-01-01 by the board: A small pilot" in page
    assert "built-in policy" not in page


def test_nothing_hostile_becomes_markup(hostile: AuditResult) -> None:
    text = render(hostile, "markdown")
    page = READER.render(text)
    for tag in ("<script", "<img", "<a ", "</style", "<b>"):
        assert tag not in page
    assert len(text) < 30_000
    assert "https://evil" not in text


@pytest.mark.parametrize(
    "text",
    ["*a* _b_ `c` ~~d~~ $e$", "[x](y) ![z](w)", "<i>|#1", "a \\ b", "1 & 2 &lt;", "{% raw %}"],
)
def test_marked_text_is_read_as_it_was(text: str) -> None:
    shown = READER.renderInline(marked(text))
    for code, letter in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        shown = shown.replace(code, letter)
    assert shown == text


def test_nobody_is_called_and_nothing_linked() -> None:
    assert marked("@team see https://x.example or www.x.example") == (
        "＠team see https:\\/\\/x.example or www\\.x.example"
    )
    assert READER.renderInline(quoted_name("a`|`b")) == "<code>aˋ¦ˋb</code>"
