"""What the pages of results and of comparisons share: assumptions, notes and the run."""

from collections.abc import Iterable, Iterator

from ldpaudit.reports.text.harmless import name, shown
from ldpaudit.reports.text.numbers import number, rows
from ldpaudit.reports.text.wording import audit_name, plugin_words
from ldpaudit.result import AuditResult, Note, PlugIn, RunInfo

Pair = tuple[str, str]
"""A term and its text."""


def notes_of(notes: Iterable[Note], level: str, before: str = "") -> list[Pair]:
    """Return the notes of one level, each with the name of its audit after ``before``."""
    return [
        (f"{before}{shown(audit_name(note.audit))}", shown(note.text))
        for note in notes
        if note.level == level
    ]


def assumptions_of(results: Iterable[AuditResult], most: int) -> tuple[Pair, ...]:
    """Return each assumption once, with at most so many of the numbers that need it."""
    needed: dict[str, dict[str, None]] = {}
    for result in results:
        for part in (*result.estimates, *result.curves, *result.histograms):
            for assumption in part.assumptions:
                sentence = shown(assumption[:1].upper() + assumption[1:])
                needed.setdefault(sentence, {})[shown(part.title)] = None
    return tuple((text, _some(list(titles), most)) for text, titles in needed.items())


def _some(titles: list[str], most: int) -> str:
    more = f" and {len(titles) - most} more" if len(titles) > most else ""
    return "; ".join(titles[:most]) + more


def run_pairs(run: RunInfo, no_policy: str) -> Iterator[Pair]:
    """Yield how a run was made, without its result's versions."""
    yield "Seed", "not fixed" if run.seed is None else str(run.seed)
    yield "Threads", rows(run.threads)
    yield "Time", f"{number(run.seconds, digits=1)} s"
    yield "Policy", f"SHA-256 {name(run.policy_sha256)}" if run.policy_sha256 else no_policy


def plugin_pairs(plugins: Iterable[PlugIn]) -> Iterator[Pair]:
    """Yield the parts of other packages that took part, where there are some."""
    if words := plugin_words(plugins):
        yield "Plug-ins", words


def versions_pair(run: RunInfo) -> Pair:
    """Return the versions of Python and of the libraries."""
    versions = (f"{name(key)} {name(value)}" for key, value in sorted(run.versions.items()))
    return "Versions", ", ".join(versions)
