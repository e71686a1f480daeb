"""The first screen: publish or not, why, what to do, when; and one number for one thing."""

import functools
import html
import importlib.resources
import json
import re
import unicodedata
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from browser import browse, with_script
from golden.results import recorded
from other_pages import PAGES
from small_tables import small_table

import ldpaudit
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.reports import render
from ldpaudit.reports.pages.page import LARGEST
from ldpaudit.reports.text import wording
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.result import AuditResult
from ldpaudit.result.numbers import number
from ldpaudit.result.sentence import Sentence
from ldpaudit.surfaces import spelt


def audited(made, rows=1500, seed=1, **options):
    """Audit a release that claims ε = 1."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, rows).astype(np.int32)
    released = RandomizedResponse.from_epsilon((0, 1), made).sample(truth, rng)
    frame = pd.DataFrame({"x": truth + rng.standard_normal(rows), "label": released})
    claim = {"name": "randomized-response", "epsilon": 1.0}
    chosen = {"only": ("mechanism", "power"), "truth": truth} | options
    return ldpaudit.audit(frame, mechanism=claim, rng=5, **chosen)


def words(page):
    page = re.sub(r"(?s)<(style|svg)\b.*?</\1>", " ", re.sub("</?kbd>", "", page))
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


@pytest.fixture(scope="module")
def results():
    return {
        "publish": audited(1.0),
        "do not publish": audited(3.0),
        "not yet": audited(1.0, truth=None),
    }


@pytest.mark.parametrize(
    ("decision", "answer"), [("publish", "yes"), ("do not publish", "no"), ("not yet", "not yet")]
)
def test_the_first_screen(results, decision, answer):
    result = results[decision]
    assert result.decision == decision
    text = words(render(result, "html"))
    start = text[: text.index("Claimed ε")]
    assert f"Publish: {answer} " in start
    assert f"Audited on {result.date}" in start
    assert 1 <= len(result.next_steps) <= 3
    for step in result.next_steps:
        assert spelt(step) in start
    sentence = Sentence.read(result.sentence)
    assert sentence.verdict.split(": ", 1)[1][1:] in start
    assert not sentence.power or f"Power. {wording.power_line(sentence)}" in start
    assert "Mean loss" not in text[: text.index("Checks")]


def test_an_earlier_result_gets_its_decision(results):
    stored = results["do not publish"].model_dump() | {"schema_version": "1.1"}
    for added in ("decision", "next_steps", "date"):
        del stored[added]
    result = AuditResult.model_validate(stored)
    assert (result.decision, result.next_steps, result.date) == ("do not publish", (), None)
    assert "Publish: no" in words(render(result, "html"))
    assert "Audited on" not in words(render(result, "html"))


@pytest.mark.parametrize("made", [1.0, 2.5])
@pytest.mark.parametrize("truth", [True, False])
def test_sentence_tile_chart_check_and_json_show_one_number(made, truth):
    result = audited(made, seed=7) if truth else audited(made, seed=7, truth=None)
    check = next(c for c in result.checks if c.id == "claimed-epsilon")
    assert check.observed is not None
    printed = number(check.observed, "down")
    decisive = Printer(result).decisive
    assert decisive.text == f"≥ {printed}"
    text = words(render(result, "html"))
    # Columns of which nothing is known prove nothing: the same number is then called measured.
    assert f"{'Proven so far' if truth else 'Measured so far'} ε ≥ {printed} nats" in text
    assert f"claimed-epsilon {wording.VERDICTS[check.verdict]} {printed} " in text
    figure = text.split("Measured ε against the claim")[1].split("What attackers learn")[0]
    assert f"≥ {printed}" in figure
    if result.verdict != "inconclusive":
        assert f"at least ε = {printed}" in result.sentence
    for bound in result.estimates:
        if bound.axis == "epsilon" and bound.kind == "certified" and bound.value != check.observed:
            assert f"≥ {number(bound.value, 'down')}" in text
    if any(e.value != check.observed for e in result.estimates if e.id in check.evidence[:1]):
        assert "uncorrected" in text


def test_a_bound_that_decides_alone_is_not_called_uncorrected():
    text = words(render(audited(2.0, truth=None), "html"))
    assert ", uncorrected)" not in text
    assert "this decides" not in text


MOST_WORDS = 1300
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
def page(kind):
    return render(recorded(KINDS[kind]), "html")


def shared_page():
    released, truth = small_table(np.random.default_rng(1))
    result = ldpaudit.audit(released, truth, "rr", epsilon=1.0, only="mechanism")
    return result.to_html(profile="public")


def but_for(alike):
    """Return the kinds of page; of those made of parts that others have, `make validate` alone."""
    return [
        pytest.param(kind, marks=pytest.mark.validate) if kind in alike else kind for kind in KINDS
    ]


class Read(HTMLParser):
    """The words that are seen on a wide screen before anything is unfolded."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.words = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        self.open.pop()

    def handle_data(self, data):
        tags = [tag for tag, _ in self.open]
        narrow = any(attributes.get("class") == "narrow" for _, attributes in self.open)
        if not narrow and not UNSEEN & set(tags) and not self._folded(tags):
            self.words += data.split()

    def _folded(self, tags):
        closed = [
            place
            for place, (tag, attributes) in enumerate(self.open)
            if tag == "details" and "open" not in attributes
        ]
        return any(tags[place + 1 : place + 2] != ["summary"] for place in closed)


def test_words_are_counted_as_they_are_seen():
    text = "<p>one two</p><details><summary>three</summary><p>four</p></details>"
    hidden = '<svg><title>five</title><text>six</text></svg><div class="narrow">seven</div>'
    assert Read(text + hidden).words == ["one", "two", "three", "six"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_short_before_it_is_unfolded(kind):
    assert 300 < len(Read(page(kind)).words) <= MOST_WORDS
    assert len(page(kind).encode()) < LARGEST
    assert "<script" not in page(kind)


def test_the_first_report_is_shorter_still():
    assert len(Read(page("pass")).words) <= 900


@pytest.mark.parametrize("kind", PAGES)
def test_every_other_page_is_short(kind):
    text = PAGES[kind]()
    assert 100 < len(Read(text).words) <= MOST_WORDS
    assert 'href="#glossary"' in text
    assert 'id="glossary"' in text


def test_many_warnings_fold_away():
    result = recorded(KINDS["fail"])
    note = next(note for note in result.notes if note.level == "warning")
    notes = [note.model_copy(update={"text": f"{'word ' * 60}{i}."}) for i in range(40)]
    text = render(result.model_copy(update={"notes": tuple(notes)}), "html")
    assert "35 more" in text
    assert len(Read(text).words) <= MOST_WORDS


@pytest.mark.parametrize("kind", KINDS)
def test_names_in_a_picture_differ(kind):
    """Two rows that look the same would be read as one."""
    for wide in re.findall(r'<div class="wide">(.*?)</div>', page(kind), re.S):
        labels = re.findall(r"<g[^>]*><text[^>]*>([^<]*)</text></g>", wide)
        assert all("…" not in label for label in labels)


def printed(text, folder):
    """Return the words of each printed page, without spaces."""
    pypdf = pytest.importorskip("pypdf")
    source, target = folder / "page.html", folder / "page.pdf"
    source.write_text(text, encoding="utf-8")
    browse(source, folder, f"--print-to-pdf={target}", "--no-pdf-header-footer")
    texts = (sheet.extract_text() for sheet in pypdf.PdfReader(target).pages)
    return ["".join(unicodedata.normalize("NFKC", text).split()) for text in texts]


@pytest.mark.parametrize(
    "kind", but_for({"inconclusive", "outsider", "double-rr", "numbers", "fail"})
)
def test_print_is_at_most_six_pages_and_what_is_unfolded(kind, tmp_path):
    pages, result = printed(page(kind), tmp_path), recorded(KINDS[kind])
    assert 2 <= len(pages) <= MOST_PAGES
    for words in ("Publish:", "Policy", "Claim", result.access[:13], *result.next_steps):
        assert "".join(spelt(words).split()) in pages[0]
    assert "Numbersbytheirids" not in "".join(pages)
    asked = page(kind).replace('<details class="folded" id="numbers"', "<details open", 1)
    assert "Numbersbytheirids" in "".join(printed(asked, tmp_path))


def test_three_columns_are_printed_on_at_most_ten_pages(whole, tmp_path):
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
def test_everybody_can_read_every_page(left_out, scheme, tmp_path):
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
    assert json.loads(found[1].replace("&gt;", ">").replace("&amp;", "&")) == []
