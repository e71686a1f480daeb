import base64
import hashlib
import html
import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from golden.results import NAMES, recorded

from ldpaudit.errors import InputError
from ldpaudit.reports import embed, render
from ldpaudit.reports.pages.page import LARGEST, unbroken
from ldpaudit.reports.text.wording import promise
from ldpaudit.result import Estimate
from ldpaudit.result.numbers import number
from ldpaudit.surfaces import speaking

VOID = {"meta", "link", "br", "img", "hr", "input"}
ALLOWED = """html head meta title style body header main footer section div p h1 h2 h3 ul ol li dl
dt dd span strong bdi kbd aside a nav code pre details summary figure figcaption table thead tbody
tr th td svg desc g path symbol use line rect text circle tspan"""


class Page(HTMLParser):
    """The page's elements, checked for balance on the way."""

    def __init__(self, page):
        super().__init__()
        self.open = []
        self.tags = Counter()
        self.attributes = []
        self.text = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, key, value or "") for key, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)

    def values(self, key):
        return [value for _, name, value in self.attributes if name == key]


@pytest.fixture(scope="session")
def page(any_result):
    return render(any_result, "html")


def words(page):
    return " ".join(" ".join(Page(page).text).split())


def shown(result):
    return words(render(result, "html"))


def test_page_is_well_formed_runs_nothing_and_asks_nobody(page):
    parsed = Page(page)
    assert set(parsed.tags) <= set(ALLOWED.split())
    assert page.startswith("<!DOCTYPE html>")
    ids = parsed.values("id")
    assert len(ids) == len(set(ids))
    references = [v.removeprefix("#") for v in parsed.values("href")]
    references += [i for v in parsed.values("aria-labelledby") for i in v.split()]
    assert set(references) <= set(ids)
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


def test_page_is_small_promises_nothing_and_has_every_number(page, any_result):
    assert len(page.encode("utf-8")) < LARGEST
    text = words(page)
    promise = r"\b(private(?! columns?)|safe|safely|secure|guaranteed)\b"
    assert not re.search(promise, text, re.I)
    assert all(estimate.id in text for estimate in any_result.estimates)
    assert all(estimate.kind in text for estimate in any_result.estimates)
    keys = ("checks", "claim", "learn", "lose", "missed", "limits", "glossary")
    keys = (*keys, "appendix", "numbers", "audited", "reproduce")
    there = [key for key in keys if f'id="{key}"' in page]
    assert {"checks", "audited", "claim", "limits", "numbers", "reproduce"} <= set(there)
    places = [page.index(f'id="{key}"') for key in there]
    assert places == sorted(places)
    assert page.index('class="verdict') < places[0]


@pytest.mark.validate
@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_page_is_small(name):
    text = recorded(name).to_html()
    assert len(text.encode()) < LARGEST
    assert "<script" not in text


def test_charts_need_no_style_sheet_and_speak(page):
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


def test_no_line_ends_within_the_name_of_an_option():
    with speaking("terminal"):
        text = unbroken("Give --truth-column <b>, or --id; a--b, --2 and ---x are none.")
    given = "Give <kbd>--truth-column</kbd> &lt;b&gt;, or <kbd>--id</kbd>"
    assert text == f"{given}; a--b, --2 and ---x are none."


@pytest.mark.parametrize(("epsilon", "most"), [(0.25, "1.29"), (1.0, "2.72"), (2.0, "7.39")])
def test_a_claim_promises_no_more_than_it_says(epsilon, most):
    assert f"at most {most}-fold." in promise(epsilon, "", several=False)


def test_hostile_strings_are_text(hostile):
    added = Estimate(id="plug-in.surprise", kind="estimated", value=0.123456)
    result = hostile.model_copy(update={"estimates": (*hostile.estimates, added)})
    page = render(result, "html")
    for markup in ("<script", "<img", "<b>", *"\u202e\u2066\x00\ud800", "W" * 500):
        assert markup not in page
    text = words(page)
    for seen in ("evil.example", "{{7*7}}&lt;https", "plug-in.surprise", "Plug in new curve"):
        assert seen in text
    charts = re.findall(r"<svg [^>]*role=\"img\".*?</svg>", page)
    assert any("&lt;script&gt;alert(1)" in chart for chart in charts)


def test_many_classes_and_numbers_stay_small(build):
    result = build("fail", k=53, epsilon=4.0, measured=4.2)
    more = [
        result.estimates[5].model_copy(update={"id": f"extra.number_{i}"})
        for i in range(60 - len(result.estimates))
    ]
    result = result.model_copy(update={"estimates": (*result.estimates, *more)})
    page = render(result, "html")
    assert len(page.encode()) < LARGEST
    assert "53 values, in the JSON result" in page


@pytest.mark.parametrize(
    ("claim", "measured"),
    [(1.0, 1.1), (1.0, 1.0004), (1.0, 1.000003), (1.0, 1 + 1e-12), (5.293304824724492, 5.2933)],
)
def test_rounding_never_contradicts_the_verdict(build, claim, measured):
    verdict = "fail" if measured > claim else "pass"
    text = shown(build(verdict, epsilon=claim, measured=measured))
    observed = re.search(r"claimed-epsilon (?:No v|V)iolation found ([\d.]+) ([\d.]+)", text)
    assert (float(observed[1]) > float(observed[2])) == (measured > claim)
    printed = re.findall(r"≥ (\d\.\d+) · above the claim", text)
    assert bool(printed) == (measured > claim)
    assert all(float(value) > claim for value in printed)


@pytest.mark.parametrize(
    ("options", "seen", "unseen"),
    [
        (
            {},
            (
                "≥ 0.976 nats ( certified, 95 %, lower bound)",
                "1.52 nats 1.49 to 1.55 ( estimated, 99 %, two-sided)",
                "1 nat ( exact)",
                "yes, by waiver",
                "Violation found, waived.",
            ),
            ("No violation found. ", "Mean loss of a person"),
        ),
        ({"truth": False}, ("skipped: the attacks cannot be scored: no true labels",), ()),
        ({"features": 0}, ("all features are constant",), ()),
        (
            {"verdict": "inconclusive", "epsilon": None},
            ("Nothing was claimed, so there is no claim to test.", "Inconclusive."),
            (),
        ),
    ],
)
def test_what_the_page_says(build, options, seen, unseen):
    text = shown(build(**{"verdict": "pass", **options})).replace("\xa0", " ")
    assert all(one in text for one in seen)
    assert not any(one in text for one in unseen)


@pytest.mark.parametrize(
    ("verdict", "word"),
    [("fail", "Violation found"), ("pass", "No violation found"), ("inconclusive", "Inconclusive")],
)
def test_verdicts(build, verdict, word):
    result = build(verdict)
    checks = tuple(check for check in result.checks if not check.waived)
    page = render(result.model_copy(update={"checks": checks}), "html")
    assert f'class="verdict {verdict}"' in page
    assert f"<strong>{word}.</strong>" in page
    ceiling = result.estimate("attack.ceiling.accuracy")
    assert f"Ceiling: {number(ceiling.value)}" in words(page)


def test_a_notebook_shows_the_answer_and_the_main_numbers(hostile, build):
    fragment = embed(hostile)
    tags = set(Page(fragment).tags)
    assert tags <= {"p", "strong", "ol", "li", "table", "tr", "th", "td", "small", "br"}
    assert hostile._repr_html_() == fragment
    result = build("pass")
    seen = html.unescape(embed(result))
    assert len(seen) < 4_000
    assert all(text in seen for text in (result.sentence, *result.next_steps, "Claimed ε"))


def test_an_unknown_format_is_refused(build):
    with pytest.raises(InputError, match="choose from html, json"):
        render(build("pass"), "pdf")


def test_rendering_is_the_same_every_time(build):
    first = render(build("pass"), "html")
    assert render(build("pass"), "html") == first


def test_any_id_is_rendered(build):
    result = build("pass")
    odd = ("attack", "attack.x", "attack.a.b.c.d", "mechanism", "power.x", "renyi.x", "epsilon")
    added = tuple(
        Estimate(id=i, kind="estimated", value=0.25, low=0.125, high=0.5, unit="nats") for i in odd
    )
    curves = tuple(
        result.curves[0].model_copy(update={"id": f"{i}.curve", "kind": "exact"}) for i in odd
    )
    more = {"estimates": (*result.estimates, *added), "curves": (*result.curves, *curves)}
    text = shown(result.model_copy(update=more))
    assert all(f" {identifier} " in text for identifier in odd)


def test_result_without_anything_is_rendered(build):
    nothing = {"estimates": (), "curves": (), "histograms": (), "checks": (), "audits": ()}
    result = build("inconclusive", epsilon=None).model_copy(update=nothing | {"notes": ()})
    text = shown(result)
    assert text.count("Not measured: this audit was not asked for.") == 3
    assert "The policy has no checks, so nothing was judged." in text


@pytest.mark.parametrize(
    ("verdict", "measured", "observed", "seen"),
    [
        ("fail", 2.8823, 2.8791, "Proven so far ε ≥ 2.879 nats"),
        ("pass", 1.002, 0.998, "≥ 1.002 · above, uncorrected"),
        ("pass", 1.002, 0.998, "Proven so far ε ≥ 0.998 nats"),
    ],
)
def test_the_bound_that_decides_is_shown_and_another_is_no_violation(
    build, verdict, measured, observed, seen
):
    result = build(verdict, measured=measured)
    first = result.checks[0].model_copy(update={"observed": observed})
    text = shown(result.model_copy(update={"checks": (first, *result.checks[1:])}))
    assert seen in text
    assert ("· above the claim" in text) == (verdict == "fail")


def test_a_page_that_grows_too_large_lists_fewer_numbers(build, monkeypatch):
    result = build()
    whole = render(result, "html")
    monkeypatch.setattr("ldpaudit.reports.pages.audit.LARGEST", len(whole))
    shorter = render(result, "html")
    assert len(shorter) < len(whole)
    assert "more numbers" in shorter


def test_the_page_says_what_an_attack_learns_from(build):
    """Only where one learns from the whole release."""
    result = build()
    known = result.estimate("attack.knn.accuracy")
    assert "from the whole release" not in shown(result)
    title = "Whole release, channel (Bayes)"
    score = known.score.model_copy(update={"subject": "bayes-whole-release", "row": title})
    whole = known.model_copy(update={"id": "attack.bayes-whole-release.accuracy", "score": score})
    text = shown(result.model_copy(update={"estimates": (*result.estimates, whole)}))
    assert "learns from all but the part that it guesses" in text
    assert title in text
