"""No surface speaks another's language: every message and every step, as each surface spells it."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

import ldpaudit
from ldpaudit.cli import members
from ldpaudit.cli.parameters import parameters_of
from ldpaudit.extras.web.forms import fields_of
from ldpaudit.extras.web.kinds import KINDS
from ldpaudit.judging.advice import TABLE
from ldpaudit.options import Option
from ldpaudit.surfaces import COMMANDS, OPTIONS, Surface, on_page, options_in, spelt

ROOT = Path(ldpaudit.__file__).parent
GROUPS = ("", "policy", "mechanism")
# What only a terminal runs, and the help of options, which the command line alone shows as it is.
TERMINAL = (
    *("cli/", "options/", "terminal.py", "extras/web/server.py", "judging/policy/", "surfaces.py"),
    "commands/interface.py",
    "extras/kinds/reports/",  # Of pipelines, which run the command line.
)
NOT_ON_THE_PAGE = (
    *("commands/declare", "commands/outputs", "commands/requests", "work/cluster"),
    *("extras/choose/commands", "extras/choose/mechanism", "extras/choose/sweep"),
    *("extras/learn", "extras/probe", "extras/release", "extras/selftest"),
)
TERMINALS_OWN = re.compile(r"in a terminal: ldpaudit [^.,;)]*")
FOREIGN: dict[Surface, re.Pattern[str]] = {
    "python": re.compile(r"(?<![\w-])--[a-z]|\bldpaudit [a-z]+ [-A-Z]|\[\[waivers|“"),
    "page": re.compile(
        r"(?<![\w-])--[a-z]|\bldpaudit [a-z]+ [-A-Z]|\[\[waivers|\b[a-z_]+=(?=[\s,.)]|$)"
    ),
}


def literals(path: Path) -> list[str]:
    """Return the sentences of a module: its texts, with {} for what is filled in."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bodies = (
        node.body[0]
        for node in ast.walk(tree)
        if getattr(node, "body", None)
        and isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
    )
    left_out = {id(one.value) for one in bodies if isinstance(one, ast.Expr)}
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    left_out |= {id(part) for node in joined for part in node.values}
    texts = [
        "".join(p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
        for node in joined
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in left_out:
            texts.append(node.value if isinstance(node.value, str) else "")
    return [text for text in texts if " " in text]


@cache
def rows() -> list[tuple[str, str]]:
    """Return every sentence that may be shown, with the module that says it."""
    said = [row["say"] for kind in ("failed", "open", "node") for row in TABLE[kind]]
    said += [*TABLE["texts"].values()]
    said += [text for words in TABLE["kinds"].values() for text in words.values()]
    found = [("judging/advice.toml", text) for text in said]
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if not place.startswith(TERMINAL):
            found += [(place, text) for text in literals(path)]
    return found


def test_there_are_rows():
    named = [text for _, text in rows() if options_in(text)]
    assert len(named) > 200


@pytest.mark.parametrize("surface", ["python", "page"])
def test_no_row_has_a_word_of_another_surface(surface):
    foreign = {}
    for place, text in rows():
        shown = TERMINALS_OWN.sub("", spelt(text, surface))
        reached = surface == "page" and not place.startswith(NOT_ON_THE_PAGE)
        if FOREIGN[surface].search(shown) or (reached and "of the command line" in shown):
            foreign[place, text] = shown
    assert [*foreign] == [], [*foreign.values()]


def test_the_terminal_has_each_row_as_it_is():
    assert all(spelt(text, "terminal") == text for _, text in rows())


def test_every_row_of_the_table_is_an_option_or_a_command():
    commands = [command for group in GROUPS for command in members(group)]
    options = {
        one.long.removeprefix("--")
        for c in commands
        for one in parameters_of(c)
        if isinstance(one.declared, Option)
    }
    assert OPTIONS.keys() <= options
    assert {*COMMANDS} == {*GROUPS[1:]} | {command.__name__ for command in members("")}


def test_every_field_of_the_page_has_a_title_of_its_own():
    for kind in KINDS.values():
        command = next(c for c in members("") if c.__name__ == kind.command)
        fields = [one for one in fields_of(parameters_of(command)).values() if not one.main]
        titles = [one.title for one in fields]
        assert all(titles), [one.name for one in fields if not one.title]
        assert len({*titles}) == len(titles)


def test_public_functions_take_the_keywords_of_the_table():
    import inspect

    taken = {
        name
        for function in (
            ldpaudit.audit,
            ldpaudit.compare,
            ldpaudit.privatize,
            ldpaudit.sweep,
            ldpaudit.advise,
            ldpaudit.describe,
        )
        for name in inspect.signature(function).parameters
    }
    of_no_function = {"profile", "debug", "predictions", "joint", "gaussian_delta"}
    assert {words.keyword for words in OPTIONS.values()} - taken <= of_no_function
    for words in COMMANDS.values():
        if words.keyword:
            assert callable(getattr(ldpaudit, words.keyword.removeprefix("ldpaudit.")))


EXAMPLES = {
    "Give the true labels (--truth).": (
        "Give the true labels (truth=).",
        "Give the true labels (field “True labels”).",
    ),
    "--minutes must lie above 0. Got 0.": (
        "minutes= must lie above 0. Got 0.",
        "“Minutes to spend at most” must lie above 0. Got 0.",
    ),
    "The 'timeout' must be more than 0 seconds. Got -9.0 instead.": (
        "The 'timeout' must be more than 0 seconds. Got -9.0 instead.",
        "“Seconds to spend at most” must be more than 0 seconds. Got -9.0 instead.",
    ),
    "Try --minutes 5.": ("Try minutes=5.", "Try “Minutes to spend at most”: 5."),
    "ldpaudit sweep finds the least noise.": (
        "ldpaudit.sweep() finds the least noise.",
        "“Choose the noise” finds the least noise.",
    ),
    "Ask: ldpaudit advise RELEASE --truth TRUTH": (
        "Ask: ldpaudit.advise(RELEASE, truth=TRUTH)",
        "Ask: “Choose the noise”",
    ),
    "Declare it (ldpaudit declare FILE --epsilon 1).": (
        "Declare it (in a terminal: ldpaudit declare FILE --epsilon 1).",
        "Declare it (in a terminal: ldpaudit declare FILE --epsilon 1).",
    ),
    "Look at more (--queries all), or less.": (
        "Look at more (queries='all'), or less.",
        "Look at more (field “Rows that look for neighbours”: all), or less.",
    ),
    "A file – with dashes --, a--b and privatized labels.": (
        "A file – with dashes --, a--b and privatized labels.",
        "A file – with dashes --, a--b and privatized labels.",
    ),
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_how_a_sentence_is_spelt(text):
    assert (spelt(text, "python"), spelt(text, "page")) == EXAMPLES[text]


def test_what_a_page_links_is_the_field_that_is_named():
    linked = on_page("Give them (--truth, --id).", lambda title, option: f"[{title}]({option})")
    assert linked == "Give them (field [True labels](truth), [Column of people’s ids](id))."


def test_policies_ask_for_no_option_of_a_surface():
    for preset in (ROOT / "judging" / "policy" / "presets").glob("*.toml"):
        assert tomllib.loads(preset.read_text(encoding="utf-8"))
