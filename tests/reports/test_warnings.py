"""A warning is called a warning on every surface, by one function, and stands beside no tick."""

import html
import json
import re

import pytest

from ldpaudit.commands.run.work import said_of
from ldpaudit.extras.compare.page import _judged
from ldpaudit.reports import Surroundings, render
from ldpaudit.reports.pages.audit import _answer, _parts
from ldpaudit.reports.text import wording
from ldpaudit.reports.text.answers import annotations
from ldpaudit.reports.text.pieces import worst_first
from ldpaudit.result import Check, PublicFacts, Question
from ldpaudit.result.answers import answer_word, is_warning, warnings_of
from ldpaudit.result.sentence import WARNING, Sentence

REASON = "columns may lead back to a person: 1 of exact dates"
WARNS = Check(
    id="identifiers",
    question="Are there columns that may lead back to a person?",
    verdict="fail",
    level="warn",
    reason=REASON,
    limit=0.0,
    observed=1.0,
)


@pytest.fixture(scope="module")
def single(build):
    """Return a result of which one check warns and all that decide are met."""
    one = build("pass")
    checks = (*(c for c in one.checks if (c.level, c.verdict) == ("error", "pass")), WARNS)
    sentence = str(Sentence("No violation found: every check is met", warning=REASON))
    return one.model_copy(update={"checks": checks, "sentence": sentence})


@pytest.fixture(scope="module")
def several(single):
    """Return a result of two releases, of which the first has the warning."""
    bare = single.model_copy(update={"checks": single.checks[:-1]})
    return bare.model_copy(update={"releases": (single, bare), "sentence": "No violation found."})


def surfaces(result):
    """Yield the name of each surface, and its text."""
    lines = [line for line in said_of(result, quiet=False) if not isinstance(line, str)]
    yield "terminal", "\n".join(": ".join(line) for line in lines)
    yield "GitHub", "\n".join(annotations(result, Surroundings()))
    for name in ("html", "markdown", "junit", "sarif"):
        text = html.unescape(re.sub(r"</?[a-z][^>]*?>", " ", render(result, name)))
        if name == "junit":
            text = html.unescape(render(result, name))
        yield name, re.sub(r"[ \t]+", " ", text.replace("**", "").replace("`", ""))


@pytest.mark.parametrize("which", ["single", "several"])
def test_every_surface_calls_a_warning_a_warning(which, request):
    result = request.getfixturevalue(which)
    for surface, text in surfaces(result):
        places = [m.start() for m in re.finditer(re.escape(REASON), text, re.I)]
        assert places, surface
        assert re.search(rf"{WARNING}\b", text, re.I), surface
        for place in places:
            before = text[max(place - 300, 0) : place].lower()
            assert not before.endswith(
                ("violation found: ", "but a check that only warns failed: ")
            )
        assert "only warns failed" not in text, surface
        assert not re.search(r"\bfail(ed)?[:|\s]+identifiers", text), surface


def test_machines_get_the_same_word(single):
    (found,) = json.loads(render(single, "sarif"))["runs"][0]["results"]
    assert (found["level"], found["properties"]["verdict"]) == ("warning", WARNING)
    assert found["message"]["text"].startswith(f"{WARNING}: {REASON}")
    assert f'<skipped message="{WARNING}: {REASON}' in render(single, "junit")
    assert f"| `identifiers` | **{WARNING}** |" in render(single, "markdown")


def test_no_tick_stands_beside_a_warning(single, several):
    assert _answer(WARNS, worst_first(several)[0].printer).look == "inconclusive"
    section = next(iter(_parts(worst_first(several))))
    looks = {answer.name.partition(":")[0]: answer.look for answer in section.answers}
    assert looks == {"Release 1": "inconclusive", "Release 2": "pass"}
    assert f"No violation found. {WARNING}: {REASON}." in {a.text for a in section.answers}
    assert _judged(single) == f"No violation found. {WARNING}: {REASON}"


def test_the_public_page_says_that_there_is_a_warning(single):
    asked = Question(check="identifiers", text="?", limits={}, level="warn")
    facts = PublicFacts(release=single.release, mechanism=single.mechanism, questions=(asked,))
    shared = single.model_copy(update={"public": facts, "decision": "not yet"})
    text = render(shared, "markdown", Surroundings(profile="public"))
    assert "or there is a warning" in text
    assert REASON not in text


@pytest.mark.parametrize(
    ("level", "verdict", "word", "warns"),
    [
        ("warn", "fail", "Warning", True),
        ("error", "fail", "Violation found", False),
        ("warn", "inconclusive", "Inconclusive", False),
        ("warn", "pass", "No violation found", False),
    ],
)
def test_what_an_answer_is_called(level, verdict, word, warns):
    check = WARNS.model_copy(update={"level": level, "verdict": verdict})
    assert (answer_word(check), is_warning(check)) == (word, warns)
    assert bool(warnings_of([check])) == warns
    assert not warnings_of([check.model_copy(update={"waived": True})])


def test_the_banner_has_a_line_each_for_the_answer_the_warning_and_the_power():
    text = (
        "nothing contradicts it; this audit would have noticed ε = 2. Warning in column a: b may "
        "lead back to a person. A violation is waived until 2030-01-01 by c: d."
    )
    read = Sentence.read(text)
    assert wording.power_line(read) == "This audit would have noticed ε = 2."
    assert read.verdict == "nothing contradicts it. A violation is waived until 2030-01-01 by c: d."
    lines = (("Warning in column a.", "B may lead back to a person."),)
    assert wording.warning_lines(read) == lines
    assert Sentence.read("nothing. So.") == Sentence("nothing. So.")
    assert wording.power_line(Sentence("nothing")) == ""
    assert wording.warning_lines(Sentence("nothing")) == ()
