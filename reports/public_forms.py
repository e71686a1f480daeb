"""The public form of results as a page: made of that form alone, never of a whole result."""

from collections.abc import Iterator, Sequence
from typing import Final

from ldpaudit.errors import InputError
from ldpaudit.reports.pages.audit import LIMITS
from ldpaudit.reports.pages.page import Banner, Page, Pair, Section, render_page
from ldpaudit.reports.text.wording import PUBLISH, SOURCES, promise
from ldpaudit.result import Question
from ldpaudit.result.harmless import name, shown
from ldpaudit.result.numbers import counted_as, number, rows
from ldpaudit.result.public import PublicComparison, PublicPart, PublicResult
from ldpaudit.work.documents import as_json

Public = PublicResult | PublicComparison
"""What is shared: of one result, or of several that were compared."""
_ICONS: Final = {"publish": "pass", "not yet": "inconclusive", "do not publish": "fail"}
_CLAIM: Final = "claimed-epsilon"
SEEN: Final = {
    True: "The auditor had the true labels.",
    False: "The auditor saw the released file alone, as anybody can.",
}


def render_public(shared: Public, format_name: str) -> str:
    """Return the public form as JSON or as a page; InputError where it has no such format."""
    if format_name == "json":
        return as_json(shared.model_dump())
    if format_name == "html":
        return _html(_results(shared))
    raise InputError(f"There is no report format {format_name!r}.")


def _results(shared: Public) -> tuple[PublicResult, ...]:
    return shared.releases if isinstance(shared, PublicComparison) else (shared,)


def publish_line(result: PublicResult) -> str:
    """Return the answer to "publish?" in a line."""
    return f"Publish: {PUBLISH[result.decision]}."


def summary_lines(shared: Public) -> Iterator[tuple[str, bool]]:
    """Yield each line that is printed, and whether it is the decision."""
    results = _results(shared)
    for result in results:
        title = "" if results == (shared,) else f"{name(result.released.release.name)}: "
        yield f"{title}{publish_line(result)} {result.sentence}", True
        for part, claim, _, power in parts_of(result):
            text = " ".join(filter(None, (claim, power)))
            yield (f"{part}: {text}" if part else text), False


def question_line(question: Question) -> str:
    """Return a question of the policy with its limits, its check first."""
    limits = ", ".join(
        f"{name(key)} {value if isinstance(value, str) else number(value)}"
        for key, value in question.limits.items()
    )
    warns = "" if question.level == "error" else " Only warns."
    until = question.accepted_until
    accepted = f" A violation in this file is accepted until {until}." if until else ""
    stated = f" Limits: {shown(limits)}." if limits else ""
    return f"{question.check}: {shown(question.text)}{stated}{warns}{accepted}"


def parts_of(result: PublicResult) -> Iterator[tuple[str, str, tuple[Pair, ...], str]]:
    """Yield the title, the claim, what follows from it, and the power of a release and its parts.

    The power is of single columns of one release; others have no classes of their own.
    """

    def walk(part: PublicPart, title: str) -> Iterator[tuple[str, str, tuple[Pair, ...], str]]:
        epsilon, leaf = part.mechanism.epsilon, part.release.classes > 0
        claim = promise(epsilon, "" if epsilon is None else number(epsilon), not leaf)
        power = _power(part.excess, result) if leaf else ""
        yield title, claim, tuple(_pairs(part)), power
        for number_, one in enumerate(part.parts, 1):
            own = name(one.release.label or "") or name(one.release.name)
            yield from walk(one, f"{f'{title}, ' if title else ''}{number_}. {own}")

    return walk(result.released, "")


def _pairs(part: PublicPart) -> Iterator[Pair]:
    yield counted_as(part.mechanism.name).capitalize(), rows(part.release.rows)
    yield "Feature columns", rows(part.release.features)
    yield "SHA-256", name(part.release.sha256 or "none: a table in memory, or with true labels")
    yield "Mechanism", name(part.mechanism.name)
    yield "Declared", SOURCES[part.mechanism.declared]
    if part.mechanism.description:
        yield "In words", shown(part.mechanism.description)
    for estimate in part.estimates:
        unit = "" if estimate.unit in ("1", "proportion") else f" {estimate.unit}"
        yield shown(estimate.title), f"{number(estimate.value)}{unit}"


def _power(excess: float | None, result: PublicResult) -> str:
    if "mechanism" in result.left_out or _CLAIM not in (one.check for one in result.questions):
        return "This audit did not check whether the release keeps its claim."
    if excess is None:
        return "How large an excess could go unseen is not known from the released labels alone."
    # Only an audit that ran to its end says "publish".
    known, ended = result.truth, result.decision == "publish"
    who = "This audit" if known and ended else "An audit with the true labels"
    less = "" if known else " This one had none, and may notice less."
    return (
        f"{who} would notice, with 90 % probability, if all labels had been released at an ε that "
        f"exceeds the claim by {number(excess)}. A smaller excess, or one of a few rows or of one "
        f"class, may go unseen.{less}"
    )


def policy_line(result: PublicResult) -> str:
    """Return which policy judged, and which audits were left out."""
    digest = f" (SHA-256 {name(result.policy_sha256)})" if result.policy_sha256 else ""
    left = ", ".join(map(name, result.left_out))
    skipped = f" Audits that were left out: {left}." if left else ""
    return f"Judged by {name(result.policy or 'a policy of its own')}{digest}.{skipped} It asks:"


def _html(results: Sequence[PublicResult]) -> str:
    first, several = results[0], len(results) > 1
    title = " and ".join(name(result.released.release.name) for result in results)
    sections = tuple(s for place, one in enumerate(results) for s in _sections(one, place, several))
    page = Page(
        what="Label privacy audit",
        title=title,
        head=f"{publish_line(first)} – audit of {title}",
        sections=(*sections, LIMITS),
        access=first.access,
        date=first.date or "",
        banners=tuple(_banner(result, several) for result in results),
        version=name(first.ldpaudit_version),
    )
    return render_page(page)


def _banner(result: PublicResult, several: bool) -> Banner:
    of = (f"{name(result.released.release.name)}:" if several else "", result.sentence)
    return Banner(_ICONS[result.decision], publish_line(result), (of, ("", SEEN[result.truth])))


def _sections(result: PublicResult, place: int, several: bool) -> Iterator[Section]:
    end = f"-{place + 1}" if place else ""
    of = f" of {name(result.released.release.name)}" if several else ""
    (_, claim, pairs, power), *parts = parts_of(result)
    within = tuple(
        Section(f"part{end}-{i}", title, tuple(filter(None, (words, strong))), pairs=facts)
        for i, (title, words, facts, strong) in enumerate(parts, 1)
    )
    texts, title = tuple(filter(None, (claim, power))), "The claim, and what could have been missed"
    yield Section(f"claim{end}", f"{title}{of and ':'}{of}", texts, pairs=pairs, within=within)
    questions = (("", tuple(("", question_line(asked)) for asked in result.questions)),)
    yield Section(f"policy{end}", f"The policy{of}", (policy_line(result),), notes=questions)
