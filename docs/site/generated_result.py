"""The page about results: every field and every id, from the code."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from ldpaudit.audits.listing import AUDITS
from ldpaudit.commands.schemas import STORED, schema_of
from ldpaudit.judging.policy import check_names
from ldpaudit.reports.text.wording import AUDITS as TITLES
from ldpaudit.result import SCHEMA_VERSION, Kind, Note, Side, Unit
from ldpaudit.result.dictionary import CURVES, ESTIMATES, HISTOGRAMS, PLACEHOLDERS
from ldpaudit.result.earlier import EARLIER

START = """\
# Results, for programs

`ldpaudit run` stores its result as JSON: sorted keys, full precision, infinite numbers as the texts
`"inf"` and `"-inf"`, no NaN. No field can hold a row, a cell, a row id or a score of one person.
`ldpaudit report --schema` prints the JSON Schema with every field, `ldpaudit report COMMAND
--schema` that of {others}. This page has the parts that programs read most.

This is schema {version}. Results of {earlier} are read and rendered as before. A minor version adds
fields that have a default; ids keep their meaning.
"""
PARTS = ("AuditResult", "Check", "Estimate")
KINDS = {
    "exact": "computed from the declared mechanism alone: no data, no uncertainty",
    "certified": "a confidence bound at its level, under the assumptions listed with it",
    "estimated": "needs the assumptions listed with it, which are not tested",
}
LEVELS = {"info": "a remark", "warning": "something to look at before publishing"}


def page() -> str:
    """Return the page."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    others = ", ".join(f"`{name}`" for name in STORED if name != "run")
    yield START.format(others=others, version=SCHEMA_VERSION, earlier=", ".join(EARLIER))
    yield from fields()
    yield "## Ids of numbers\n"
    yield "A part in angle brackets stands for any of its kind:\n"
    yield from table("part", PLACEHOLDERS, mark="<{}>")
    yield "Other packages add ids of their own.\n"
    for name, listed in (("estimates", ESTIMATES), ("curves", CURVES), ("histograms", HISTOGRAMS)):
        yield f"### In `{name}`\n"
        yield from table("id", listed)
    yield "## Other names\n"
    yield "`kind` of a number: how sure it is.\n"
    yield from table("kind", {kind: KINDS[kind] for kind in get_args(Kind)})
    yield f"`side`: which ends are bounded ({listed_of(Side)}). `unit`: {listed_of(Unit)}.\n"
    yield "`level` of a note:\n"
    levels = get_args(Note.model_fields["level"].annotation)
    yield from table("level", {level: LEVELS[level] for level in levels})
    yield "`id` of an audit, for `--only` and `--skip`:\n"
    yield from table("id", {name: TITLES.get(name, name.capitalize()) for name in AUDITS})
    checks = ", ".join(f"`{name}`" for name in ("min-rows", *check_names()))
    yield f"`id` of a check: {checks}; `ldpaudit policy explain` says what each compares.\n"


def fields() -> Iterator[str]:
    """Give a table of fields for each part of a result."""
    schema = json.loads(schema_of("run"))
    parts = {"AuditResult": schema} | schema["$defs"]
    for name in PARTS:
        part = parts[name]
        title = "The result" if name == "AuditResult" else f"`{name}`"
        yield f"## {title}\n\n{part['description']}\n\n| field | type | is |\n|---|---|---|"
        for field, content in sorted(part["properties"].items()):
            cells = (f"`{field}`", type_of(content), safe(content["description"]))
            yield f"| {' | '.join(cells)} |"
        yield ""


def table(head: str, rows: Mapping[str, str], mark: str = "{}") -> Iterator[str]:
    """Give a table of names and what they mean."""
    yield f"| {head} | is |\n|---|---|"
    yield from (f"| `{mark.format(name)}` | {safe(text)} |" for name, text in rows.items())
    yield ""


def listed_of(kind: Any) -> str:
    """Return the values of a literal type."""
    return ", ".join(f"`{value}`" for value in get_args(kind))


def type_of(schema: Mapping[str, Any]) -> str:
    """Return the type of a field in words."""
    if "anyOf" in schema:
        kinds = [type_of(one) for one in schema["anyOf"] if "inf" not in one.get("enum", ())]
        return " or ".join(kinds)
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    if schema.get("type") == "object":
        return "object"
    words = {"string": "text", "boolean": "true or false", "integer": "whole number"}
    return words.get(schema.get("type", ""), schema.get("type", "anything"))


def safe(text: str) -> str:
    """Return a text for a cell of a table."""
    return text.replace("|", "\\|").replace("<", "\\<")
