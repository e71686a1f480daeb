import base64
import hashlib
import html
import re
import time
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser

import pytest

from ldpaudit.errors import InputError
from ldpaudit.reports import FORMATS, embed, render, report_format
from ldpaudit.reports.text.numbers import number
from ldpaudit.result import AuditResult, Estimate

Build = Callable[..., AuditResult]
VOID = {"meta", "link", "br", "img", "hr", "input"}
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "section"),
    *(
        "div",
        "p",
        "h1",
        "h2",
        "h3",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "span",
        "strong",
        "bdi",
        "aside",
    ),
    *("a", "nav", "code", "pre", "details", "summary", "figure", "figcaption", "table", "thead"),
    *(
        "tbody",
        "tr",
        "th",
        "td",
        "svg",
        "desc",
        "g",
        "path",
        "symbol",
        "use",
        "line",
        "rect",
        "text",
        "circle",
        "tspan",
    ),
}


class Page(HTMLParser):
    """The page's elements, checked for balance on the way."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, key, value or "") for key, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)

    def values(self, key: str) -> list[str]:
        return [value for _, name, value in self.attributes if name == key]


@pytest.fixture(scope="session")
def page(any_result: AuditResult) -> str:
    return render(any_result, "html")


def words(page: str) -> str:
    return " ".join(" ".join(Page(page).text).split())


def test_page_is_well_formed_and_has_known_elements_only(page: str) -> None:
    parsed = Page(page)
    assert set(parsed.tags) <= ALLOWED
    assert page.startswith("<!DOCTYPE html>")
    ids = parsed.values("id")
    assert len(ids) == len(set(ids))
    references = [v.removeprefix("#") for v in parsed.values("href")]
    references += [i for v in parsed.values("aria-labelledby") for i in v.split()]
    assert set(references) <= set(ids)


def test_page_runs_nothing_and_asks_nobody(page: str) -> None:
    parsed = Page(page)
    assert parsed.tags["script"] == 0
    for _, key, value in parsed.attributes:
        assert not key.startswith("on")
        assert key not in ("src", "srcset", "style", "xlink:href", "action", "data")
        assert key != "href" or value.startswith("#")
    style = page.split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = next(v for v in parsed.values("content") if v.startswith("default-src"))
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")


def test_page_is_small_and_the_same_every_time(page: str, any_result: AuditResult) -> None:
    assert len(page.encode("utf-8")) < 300_000
    assert render(any_result, "html") == page


def test_wording_promises_nothing(page: str) -> None:
    assert not re.search(
        r"\b(private(?! columns?)|safe|safely|secure|guaranteed)\b", words(page), re.I
    )


def test_order_of_the_parts(page: str) -> None:
    told = ("checks", "audited", "claim", "learn", "lose", "missed", "limits", "glossary")
    parts = ("epsilon", "loss", "attacks", "renyi", "power", "numbers", "reproduce")
    there = [key for key in parts if f'id="{key}"' in page]
    assert {"epsilon", "numbers", "reproduce"} <= set(there)
    shown = [key for key in told if f'id="{key}"' in page]
    assert {"checks", "audited", "claim", "limits", "glossary"} <= set(shown)
    places = [page.index(f'id="{key}"') for key in (*shown, "appendix", *there)]
    assert places == sorted(places)
    assert page.index('class="verdict') < places[0]


def test_every_number_is_in_the_page_with_its_kind(page: str, any_result: AuditResult) -> None:
    text = words(page)
    for estimate in any_result.estimates:
        assert estimate.id in text
        assert f"n-{estimate.id.replace('.', '-')}" in page
    for kind in {e.kind for e in any_result.estimates}:
        assert kind in text


def test_charts_need_no_style_sheet_and_speak(page: str, any_result: AuditResult) -> None:
    for svg in re.findall(r"<svg [^>]*role=\"img\".*?</svg>", page):
        assert "style=" not in svg
        assert "class=" not in svg
        assert 'fill="currentColor"' in svg
        assert not re.search(r'(fill|stroke)="(black|white|#000|#fff|#ddd|#888)"', svg)
        assert re.search(r"<title id=[^>]*>[^<]{8,}</title>", svg)
        place = re.search(r'aria-labelledby="\S+ (\S+)"', svg)[1]
        assert re.search(rf'<(desc|p class="quiet") id="{place}">[^<]{{20,}}</\w+>', page)
    for figure in re.findall(r"<figure.*?</figure>", page, re.S):
        pictures = 1 if 'class="small"' in figure else 2
        assert figure.count('role="img"') == pictures
        assert figure.count(' display="none"') == pictures - 1
        assert "<table>" in figure


def test_hostile_strings_are_text(hostile: AuditResult) -> None:
    page = render(hostile, "html")
    assert "<script" not in page
    assert "<img" not in page
    assert "<b>" not in page
    assert "evil.example" in page
    for hidden in "\u202e\u2066\x00\ud800":
        assert hidden not in page
    assert "{{7*7}}&lt;https" in words(page)
    assert "W" * 500 not in page
    page.encode("utf-8")


def test_hostile_strings_are_text_in_charts_too(hostile: AuditResult) -> None:
    page = render(hostile, "html")
    charts = re.findall(r"<svg [^>]*role=\"img\".*?</svg>", page)
    assert any("&lt;script&gt;alert(1)" in chart for chart in charts)


def test_unknown_numbers_and_curves_need_no_new_template(hostile: AuditResult) -> None:
    added = Estimate(id="plug-in.surprise", kind="estimated", value=0.123456)
    result = hostile.model_copy(update={"estimates": (*hostile.estimates, added)})
    text = words(render(result, "html"))
    assert "plug-in.surprise" in text
    assert "0.123" in text
    assert "Plug in new curve" in text


def test_many_classes_and_numbers_stay_small(build: Build) -> None:
    result: AuditResult = build("fail", k=53, epsilon=4.0, measured=4.2)
    more = [
        result.estimates[5].model_copy(update={"id": f"extra.number_{i}"})
        for i in range(60 - len(result.estimates))
    ]
    result = result.model_copy(update={"estimates": (*result.estimates, *more)})
    assert len(result.estimates) == 60
    page = render(result, "html")
    assert len(page.encode()) < 300_000
    assert "53 values, in the JSON result" in page


@pytest.mark.parametrize("excess", [1e-1, 4e-4, 3e-6, 1e-12])
def test_rounding_never_contradicts_the_verdict(build: Build, excess: float) -> None:
    result: AuditResult = build("fail", epsilon=1.0, measured=1.0 + excess)
    text = words(render(result, "html"))
    printed = re.findall(r"≥ (1\.\d+) · above the claim", text)
    assert printed
    assert all(float(value) > 1 for value in printed)
    observed = re.search(r"Observed (\S+) Limit (\S+)", text)
    assert observed is not None
    assert float(observed[1]) > float(observed[2]) == 1.0


def test_a_bound_just_below_the_claim_prints_below(build: Build) -> None:
    claim = 5.293304824724492
    result: AuditResult = build("pass", epsilon=claim, measured=5.2933)
    text = words(render(result, "html"))
    observed = re.search(r"Observed (\S+) Limit (\S+)", text)
    assert observed is not None
    assert float(observed[1]) < float(observed[2])
    assert "· above the claim" not in text


def test_number_with_kind_level_and_side(build: Build) -> None:
    text = words(render(build("pass"), "html")).replace("\xa0", " ")
    assert "≥ 0.976 nats ( certified, 95 %, lower bound)" in text
    assert "1.52 nats 1.49 to 1.55 ( estimated, 99 %, two-sided)" in text
    assert "1 nat ( exact)" in text


def test_verdicts(build: Build) -> None:
    for verdict, word in (
        ("fail", "Violation found"),
        ("pass", "No violation found"),
        ("inconclusive", "Inconclusive"),
    ):
        result = build(verdict)
        checks = tuple(check for check in result.checks if not check.waived)
        page = render(result.model_copy(update={"checks": checks}), "html")
        assert f'class="verdict {verdict}"' in page
        assert f"<strong>{word}.</strong>" in page


def test_a_waived_violation_is_no_plain_yes(build: Build) -> None:
    page = render(build("pass"), "html")
    assert "yes, by waiver" in page
    assert 'class="verdict pass"' not in page
    assert "<strong>No violation found.</strong>" not in page


def test_missing_parts_say_why(build: Build) -> None:
    outsider = words(render(build("pass", truth=False), "html"))
    assert "the audit was skipped: the attacks cannot be scored: no true labels" in outsider
    alone = words(render(build("pass", features=0), "html"))
    assert "the audit was skipped: all features are constant" in alone
    unknown = words(render(build("inconclusive", epsilon=None), "html"))
    assert "Nothing was claimed, so there is no claim to test." in unknown


def test_embedding_is_one_sealed_frame(hostile: AuditResult) -> None:
    fragment = embed(hostile)
    parsed = Page(fragment)
    assert parsed.tags == {"p": 1, "strong": 1, "iframe": 1}
    attributes = {key: value for tag, key, value in parsed.attributes if tag == "iframe"}
    assert attributes["sandbox"] == ""
    assert attributes["srcdoc"] == render(hostile, "html")
    assert "<script" not in fragment
    assert hostile._repr_html_() == fragment


def test_embedding_shows_the_verdict_without_the_frame(build: Build) -> None:
    result: AuditResult = build("pass")
    first = embed(result).splitlines()[0]
    assert html.unescape(first) == f"<p><strong>{result.sentence}</strong></p>"


def test_formats() -> None:
    for name in FORMATS:
        found = report_format(name)
        assert found.name == name
        assert found.suffix == {"junit": ".xml", "markdown": ".md"}.get(name, f".{name}")
    with pytest.raises(InputError, match="choose from html, json"):
        report_format("pdf")


def test_rendering_takes_seconds_not_minutes(build: Build) -> None:
    start = time.process_time()
    render(build("pass"), "html")
    # One second of one core when measured; the limit only catches a blunder.
    assert time.process_time() - start < 15


def test_numbers_in_the_page_are_those_of_the_result(build: Build) -> None:
    result: AuditResult = build("pass")
    ceiling = result.estimate("attack.ceiling.accuracy")
    assert ceiling is not None
    assert f"Ceiling: {number(ceiling.value)}" in words(render(result, "html"))


def test_any_id_is_rendered(build: Build) -> None:
    result = build("pass")
    odd = ("attack", "attack.x", "attack.a.b.c.d", "mechanism", "power.x", "renyi.x", "epsilon")
    added = tuple(
        Estimate(id=i, kind="estimated", value=0.25, low=0.125, high=0.5, unit="nats") for i in odd
    )
    curves = tuple(
        result.curves[0].model_copy(update={"id": f"{i}.curve", "kind": "exact"}) for i in odd
    )
    more = {"estimates": (*result.estimates, *added), "curves": (*result.curves, *curves)}
    text = words(render(result.model_copy(update=more), "html"))
    for identifier in odd:
        assert f" {identifier} " in text


def test_result_without_anything_is_rendered(build: Build) -> None:
    nothing = {"estimates": (), "curves": (), "histograms": (), "checks": (), "audits": ()}
    result = build("inconclusive", epsilon=None).model_copy(update=nothing | {"notes": ()})
    text = words(render(result, "html"))
    assert text.count("Not measured: this audit was not asked for.") == 4
    assert "The policy has no checks, so nothing was judged." in text


def test_the_tile_and_the_sentence_show_the_same_bound(build: Build) -> None:
    result = build("fail", measured=2.8823)
    checks = (result.checks[0].model_copy(update={"observed": 2.8791}), *result.checks[1:])
    text = words(render(result.model_copy(update={"checks": checks}), "html"))
    assert "Measured ε ≥ 2.879 nats" in text


def test_a_bound_that_is_above_only_without_correction_is_no_violation(build: Build) -> None:
    result = build("pass", measured=1.002)
    corrected = result.checks[0].model_copy(update={"observed": 0.998})
    result = result.model_copy(update={"checks": (corrected, *result.checks[1:])})
    text = words(render(result, "html"))
    assert "≥ 1.002 · above, uncorrected" in text
    assert "· above the claim" not in text
    assert "Measured ε ≥ 0.998 nats" in text


def test_a_page_that_grows_too_large_lists_fewer_numbers(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = build()
    whole = render(result, "html")
    monkeypatch.setattr("ldpaudit.reports.html.LARGEST_PAGE", len(whole))
    shorter = render(result, "html")
    assert len(shorter) < len(whole)
    assert "more numbers" in shorter
    assert set(Page(shorter).values("href")) <= {f"#{i}" for i in Page(shorter).values("id")}


def test_the_page_says_what_an_attack_learns_from(build: Build) -> None:
    """Only where one learns from the whole release."""
    result = build()
    known = result.estimate("attack.knn.accuracy")
    assert known is not None
    assert "from the whole release" not in words(render(result, "html"))
    assert known.score is not None
    title = "Whole release, channel (Bayes)"
    score = known.score.model_copy(update={"subject": "bayes-whole-release", "row": title})
    whole = known.model_copy(update={"id": "attack.bayes-whole-release.accuracy", "score": score})
    more = result.model_copy(update={"estimates": (*result.estimates, whole)})
    text = words(render(more, "html"))
    assert "learns from all but the part that it guesses" in text
    assert "Whole release, channel (Bayes)" in text
