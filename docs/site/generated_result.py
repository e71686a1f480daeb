"""The page about results: every id, from the code."""

from collections.abc import Iterable, Iterator, Mapping

from ldpaudit.audits.listing import ORDER
from ldpaudit.cli.schemas import storing
from ldpaudit.judging.policy import check_names
from ldpaudit.result import SCHEMA_VERSION
from ldpaudit.result.dictionary import CURVES, ESTIMATES, HISTOGRAMS, PLACEHOLDERS
from ldpaudit.result.earlier import EARLIER

START = """\
# Results, for programs

`ldpaudit run` stores its result as JSON: sorted keys, full precision, infinite numbers as the texts
`"inf"` and `"-inf"`, no NaN. No field can hold a row, a cell, a row id or a score of one person.
`ldpaudit report --schema` prints the JSON Schema, which describes every field; `ldpaudit report
COMMAND --schema` prints that of {others}. This page lists the ids.

This is schema {version}. Results of {earlier} are read and rendered as before. A minor version adds
fields that have a default; ids keep their meaning.

- whether to publish, and why: `decision`, `verdict`, `sentence`, `next_steps`
- the answer of a check: `checks`, by `id`: `verdict`, `observed` against `limit`, `reason`
- a number: `estimates`, by `id`: `value`, `low`, `high`, `level`, `unit`, \
[`kind`](explanation/kinds-of-numbers.md)
- the parts of a result: `labels` (private columns), `releases`, `strata`: each a result
- what each column explains of true and of released labels, with counts by bin, on at most \
20,000 rows: `columns`
- true against released labels and the claimed channel: `confusion`
- remarks and warnings: `notes`
"""


def page() -> str:
    """Return the page."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    others = ", ".join(f"`{name}`" for name in storing() if name != "run")
    yield START.format(others=others, version=SCHEMA_VERSION, earlier=", ".join(EARLIER))
    yield "## Ids of numbers\n"
    yield "A part in angle brackets stands for any of its kind:\n"
    yield from listed(PLACEHOLDERS, mark="<{}>")
    yield "Other packages add ids of their own.\n"
    for name, ids in (("estimates", ESTIMATES), ("curves", CURVES), ("histograms", HISTOGRAMS)):
        yield f"### In `{name}`\n"
        yield from listed(ids)
    yield "## Other ids\n"
    yield f"Audits, for `--only` and `--skip`: {coded(ORDER)}.\n"
    yield f"Checks: {coded(('min-rows', *check_names()))}; `ldpaudit policy explain` says what \
each compares.\n"


def listed(words: Mapping[str, str], mark: str = "{}") -> Iterator[str]:
    """Give a list of names and what they mean."""
    yield from (f"- `{mark.format(name)}`: {safe(text)}" for name, text in words.items())
    yield ""


def coded(names: Iterable[str]) -> str:
    """Return names as code, in a row."""
    return ", ".join(f"`{name}`" for name in names)


def safe(text: str) -> str:
    """Return a text in which nothing begins markup."""
    return text.replace("<", "\\<")
