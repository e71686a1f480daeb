"""The page as people read it: how long it is, in print, and for everybody (axe-core)."""

import functools
import importlib.resources
import json
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import browse, with_script
from golden.results import recorded
from other_pages import PAGES
from small_tables import small_table

import ldpaudit
from ldpaudit.reports import render
from ldpaudit.result import AuditResult

MOST_WORDS = 1500
MOST_PAGES = 6
KINDS = {
    "pass": "run-rr-all-audits",
    "fail": "run-rr-dishonest",
    "inconclusive": "run-unknown-with-truth",
    "numbers": "run-laplace",
    "outsider": "run-rr-without-truth",
    "double-rr": "run-double-rr",
}
VOID = {"meta", "br", "hr", "img", "input", "link"}
UNSEEN = {"style", "title", "desc", "head"}


@functools.cache
def page(kind: str) -> str:
    return render(recorded(KINDS[kind]), "html")


def shared_page() -> str:
    released, truth = small_table(np.random.default_rng(1))
    result = ldpaudit.audit(released, truth, "rr", epsilon=1.0, only="mechanism")
    return result.to_html(profile="public")


def but_for(alike: set[str]) -> list[Any]:
    """Return the kinds of page; of those made of parts that others have, `make validate` alone."""
    return [
        pytest.param(kind, marks=pytest.mark.validate) if kind in alike else kind for kind in KINDS
    ]


class Read(HTMLParser):
    """The words that are seen on a wide screen before anything is unfolded."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()

    def handle_data(self, data: str) -> None:
        tags = [tag for tag, _ in self.open]
        narrow = any(attributes.get("class") == "narrow" for _, attributes in self.open)
        if not narrow and not UNSEEN & set(tags) and not self._folded(tags):
            self.words += data.split()

    def _folded(self, tags: list[str]) -> bool:
        closed = [
            place
            for place, (tag, attributes) in enumerate(self.open)
            if tag == "details" and "open" not in attributes
        ]
        return any(tags[place + 1 : place + 2] != ["summary"] for place in closed)


def test_words_are_counted_as_they_are_seen() -> None:
    text = "<p>one two</p><details><summary>three</summary><p>four</p></details>"
    hidden = '<svg><title>five</title><text>six</text></svg><div class="narrow">seven</div>'
    assert Read(text + hidden).words == ["one", "two", "three", "six"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_short_before_it_is_unfolded(kind: str) -> None:
    assert 300 < len(Read(page(kind)).words) <= MOST_WORDS


@pytest.mark.parametrize("kind", PAGES)
def test_every_other_page_is_short(kind: str) -> None:
    text = PAGES[kind]()
    assert 100 < len(Read(text).words) <= MOST_WORDS
    assert 'href="#glossary"' in text
    assert 'id="glossary"' in text


def test_many_warnings_fold_away() -> None:
    result = recorded(KINDS["fail"])
    note = next(note for note in result.notes if note.level == "warning")
    notes = [note.model_copy(update={"text": f"{'word ' * 60}{i}."}) for i in range(40)]
    text = render(result.model_copy(update={"notes": tuple(notes)}), "html")
    assert "35 more" in text
    assert len(Read(text).words) <= MOST_WORDS


@pytest.mark.parametrize("kind", KINDS)
def test_names_in_a_picture_differ(kind: str) -> None:
    """Two rows that look the same would be read as one."""
    for wide in re.findall(r'<div class="wide">(.*?)</div>', page(kind), re.S):
        labels = re.findall(r"<g[^>]*><text[^>]*>([^<]*)</text></g>", wide)
        assert all("…" not in label for label in labels)


def printed(text: str, folder: Path) -> list[str]:
    """Return the words of each printed page, without spaces."""
    pypdf = pytest.importorskip("pypdf")
    source, target = folder / "page.html", folder / "page.pdf"
    source.write_text(text, encoding="utf-8")
    browse(source, folder, f"--print-to-pdf={target}", "--no-pdf-header-footer")
    texts = (sheet.extract_text() for sheet in pypdf.PdfReader(target).pages)
    return ["".join(unicodedata.normalize("NFKC", text).split()) for text in texts]


@pytest.mark.parametrize("kind", but_for({"inconclusive", "outsider", "double-rr", "numbers"}))
def test_print_is_at_most_six_pages_and_what_is_unfolded(kind: str, tmp_path: Path) -> None:
    pages, result = printed(page(kind), tmp_path), recorded(KINDS[kind])
    assert 2 <= len(pages) <= MOST_PAGES
    for words in ("Publish:", "Policy", "Claim", result.access[:13], *result.next_steps):
        assert "".join(words.split()) in pages[0]
    assert "Numbersbytheirids" not in "".join(pages)
    asked = page(kind).replace('<details class="folded" id="numbers"', "<details open", 1)
    assert "Numbersbytheirids" in "".join(printed(asked, tmp_path))


def test_three_columns_are_printed_on_at_most_ten_pages(whole: AuditResult, tmp_path: Path) -> None:
    pages = printed(render(whole, "html"), tmp_path)
    assert len(pages) <= 10
    assert all(f"Column{name}" in "".join(pages) for name in ("income", "1", "3"))


AXE = """
axe.run(document, OPTIONS).then(found => parent.postMessage(
  found.violations.map(v => NAME + " " + v.id + ": " + v.nodes.map(n => n.target).join(" ")), "*"));
"""
RULES = {
    "light": '{resultTypes: ["violations"]}',
    "dark": '{resultTypes: ["violations"], runOnly: ["color-contrast"]}',
}
"""In the dark only colours differ."""
ALIKE = {"inconclusive", "numbers", "outsider", "double-rr", "public", "numeric"}
"""Pages made of parts that others have, too: `make validate` reads them as well."""
ALIKE_IN_COLOUR = ALIKE | {"pass", "finite"}
FRAMES = """<!DOCTYPE html><html><body><pre id="found"></pre><script>
const found = [];
addEventListener("message", event => {
  found.push(event.data);
  if (found.length === COUNT) document.getElementById("found").textContent =
    "FOUND" + JSON.stringify(found.flat()) + "END";
});
</script>FRAMES</body></html>"""


@pytest.mark.parametrize(
    ("left_out", "scheme"),
    [
        (ALIKE, "light"),
        (ALIKE_IN_COLOUR, "dark"),
        pytest.param(set(), "light", marks=pytest.mark.validate),
        pytest.param(set(), "dark", marks=pytest.mark.validate),
    ],
)
def test_everybody_can_read_every_page(left_out: set[str], scheme: str, tmp_path: Path) -> None:
    """All pages in one browser, one of them unfolded: axe-core finds no violation."""
    pytest.importorskip("axe_core_python")
    axe = importlib.resources.files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
    (tmp_path / "axe.js").write_text(axe, encoding="utf-8")
    pages = {kind: page(kind) for kind in KINDS}
    pages["public"] = shared_page()
    pages |= {kind: make() for kind, make in PAGES.items()}
    frames = ""
    pages = {kind: text for kind, text in pages.items() if kind not in left_out}
    for kind, text in pages.items():
        script = AXE.replace("NAME", json.dumps(kind)).replace("OPTIONS", RULES[scheme])
        if kind == "pass" and scheme == "light":
            text = re.sub(r"<details\b", "<details open", text)
        text = with_script(text, "axe.js", script)
        (tmp_path / f"{kind}.html").write_text(text, encoding="utf-8")
        frames += f'<iframe width="1280" height="800" src="{kind}.html"></iframe>'
    start = tmp_path / "start.html"
    start.write_text(
        FRAMES.replace("COUNT", str(len(pages))).replace("FRAMES", frames), encoding="utf-8"
    )
    dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    seen = browse(start, tmp_path, "--virtual-time-budget=60000", "--dump-dom", *dark)
    found = re.search(r"FOUND(\[.*?\])END", seen, re.S)
    assert found is not None
    assert json.loads(found[1].replace("&gt;", ">").replace("&amp;", "&")) == []
