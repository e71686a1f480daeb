"""The page of an audit: whether to publish, the checks, what was found, every number."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from ldpaudit.reports.charts.figure import Cell, Table
from ldpaudit.reports.pages.page import (
    GLOSSARY,
    LARGEST,
    Answer,
    Banner,
    Page,
    Pair,
    Section,
    Tile,
    render_page,
    size_of,
)
from ldpaudit.reports.pages.sections import FILE_ORDER, sections_of
from ldpaudit.reports.text import wording
from ldpaudit.reports.text.pieces import Piece, best_guess, kind_of, table_of, worst_first
from ldpaudit.reports.text.quantities import Printer, Quantity, is_epsilon
from ldpaudit.result import AuditResult, Check, Estimate, Note, RunInfo
from ldpaudit.result.answers import answer_word, is_warning
from ldpaudit.result.harmless import PHRASE, name, shown
from ldpaudit.result.numbers import counted_as, number, percent, rows
from ldpaudit.result.sentence import Sentence

_MOST_NUMBERS: Final = 60
"""More estimates than this are in the JSON result only: the page stays under 300 kB."""
_MOST_ITEMS: Final = 60
"""Values of a list that the page shows."""
_DERIVED: Final = 3
_LOOKS: Final = {"yes": "pass", "no": "fail"}
_HEADINGS: Final = {"Column": "Private columns", "Release": "Releases", "Stratum": "Strata"}
_CHECKS: Final = ("Check", "Answer", "Observed", "Limit", "Confidence", "p-value", "Weight")
LEFT_OUT: Final = (
    "",
    "Its tables are left out to keep this page small; the JSON result has them.",
    "Its pictures and tables are left out to keep this page small; the JSON result has them.",
)
"""How much of a part a page shows, and what it says of the rest."""


def audit_page(result: AuditResult) -> str:
    """Return the page of a result; where it grows too large, what it lists gives way."""
    pieces = worst_first(result)
    printer = Printer(result)
    found = sections_of(result, printer)
    versions = [_piece(piece) for piece in pieces]
    page = Page(
        what="Label privacy audit",
        title=name(result.release.name),
        head=f"Publish: {wording.publish_answer(result)} – audit of {name(result.release.name)}",
        access=result.access,
        date=result.date or "",
        banners=(_banner(result),),
        facts=tuple(_facts(result, printer)),
        tiles=tuple(tiles_of(result, printer)),
        sections=(),
        version=name(result.ldpaudit_version),
    )
    text = ""
    for most, left_out in ((_MOST_NUMBERS, ""), (_MOST_NUMBERS, FILE_ORDER), (0, FILE_ORDER)):
        kept = tuple(one.but(left_out) for one in found)
        start = (*_parts(pieces), _checks(result, printer), *kept)
        limits = replace(LIMITS, folded=tuple(_rests_on(result)))
        end: tuple[Section, ...]
        end = (limits, GLOSSARY, _appendix(result, printer, pieces, most))
        if pieces:
            empty = render_page(replace(page, sections=(*start, *end)))
            sizes = [[size_of(section) for section in each] for each in versions]
            levels = fitting(sizes, LARGEST - len(empty.encode()) - 1000)
            each = [each[level] for each, level in zip(versions, levels, strict=True)]
            heading = f"Each {kind_of(pieces).lower()}"
            intro = ("Unfold one for its checks, its pictures and its numbers.",)
            end = (Section("each", heading, intro, folded=tuple(each)), *end)
        text = render_page(replace(page, sections=(*start, *end)))
        if len(text.encode()) < LARGEST:
            break
    return text


LIMITS: Final = Section("limits", "Limits", notes=(("", tuple(("", t) for t in wording.LIMITS)),))
"""What no audit can say."""


def _rests_on(result: AuditResult) -> Iterator[Section]:
    texts = [("", f"{t[:1].upper()}{t[1:]}.") for t in wording.assumed_by_bounds(result)]
    if texts:
        yield Section("assumed", "What the certified numbers assume", notes=(("", tuple(texts)),))


def fitting(sizes: Sequence[Sequence[int]], room: int) -> list[int]:
    """Return the level at which each part fits into so many bytes: the worst part keeps most.

    ``sizes`` are, for each part, the worst first, its size at every level.
    """
    levels = [0] * len(sizes)
    for level in range(1, len(LEFT_OUT)):
        for position in reversed(range(len(sizes))):
            if sum(size[at] for size, at in zip(sizes, levels, strict=True)) <= room:
                return levels
            levels[position] = level
    return levels


def _banner(result: AuditResult) -> Banner:
    """Return the decision; the verdict's sentence is without the words that stand before it."""
    sentence, start = Sentence.read(shown(result.sentence, 3 * PHRASE)), wording.headline(result)
    rest = sentence.verdict.removeprefix(f"{start}: ").removeprefix("Violation found, ")
    rest = rest.removeprefix(f"{start} ")  # "… in column 2: …"
    power, publish = wording.power_line(sentence), wording.publish_answer(result)
    sentences = (
        (f"{start}.", rest[:1].upper() + rest[1:]),
        *wording.warning_lines(sentence),
        *([("Power.", power)] if power else []),
    )
    return Banner(
        _LOOKS.get(publish, "inconclusive"),
        f"Publish: {publish}",
        tuple(sentences),
        tuple(shown(step) for step in result.next_steps),
    )


def _facts(result: AuditResult, printer: Printer) -> Iterator[Pair]:
    release, (what, count) = result.release, _held(result)
    of = counted_as(result.mechanism.name)
    features = "1 feature" if release.features == 1 else f"{rows(release.features)} features"
    sizes = f"{rows(release.rows)} {of}, {features}, {count} {what.lower()}"
    digest = f"; SHA-256 {name(release.sha256[:12])}…" if release.sha256 else ""
    yield "Audited", f"{sizes}{digest}"
    yield "Claim", _claim(result, printer)
    every = wording.every_check(result)
    deciding = sum(check.level == "error" for check in every)
    warning = len(every) - deciding
    decide = "1 check decides" if deciding == 1 else f"{deciding} checks decide"
    only = f"{decide}, {'1 only warns' if warning == 1 else f'{warning} only warn'}"
    yield "Policy", f"{wording.policy_words(result.run)}; {only}"
    seen = "the release and the true labels" if release.truth else "the release alone"
    yield "Seen by the auditor", seen


def _held(result: AuditResult) -> Pair:
    """Return how many labels there are: classes, private columns or releases."""
    if result.releases:
        return "Releases", rows(len(result.releases))
    if result.labels:
        return "Private columns", rows(len(result.labels))
    return "Classes", rows(result.release.classes)


def _claim(result: AuditResult, printer: Printer) -> str:
    """Return the mechanism and its ε in one line."""
    mechanism = result.mechanism
    if mechanism.declared is None:
        return "nothing"
    described = result.parts and mechanism.description
    title = shown(mechanism.description) if described else name(mechanism.name)
    epsilon = f", ε = {printer.claim}" if printer.claim else ""
    return f"{title}{epsilon}; declared {wording.SOURCES[mechanism.declared]}"


def tiles_of(result: AuditResult, printer: Printer) -> Iterator[Tile]:
    """Yield the few numbers at the top of the page."""
    claim = printer.claim
    unit = {"": "none", "1": " nat", "∞": ""}.get(claim, " nats")
    source, mark = ("exact, as declared", "exact") if claim else ("", "")
    yield Tile("Claimed ε", f"{claim}{unit}", source, mark)
    if (measured := printer.measured) is not None:
        text = f"{measured.text} {measured.unit}".strip()
        text = f"ε {text}" if measured.estimate.side == "lower" else text
        yield Tile(printer.called, text, measured.words, measured.mark)
    guess, gain = best_guess(result, printer), result.estimate("attack.best.advantage")
    if guess is not None:
        found = guess.quantity
        yield Tile(guess.title, guess.text, found.words, found.mark, guess.blind)
    elif not result.release.truth:
        yield Tile("Best attack", "not scored", remarks=("that needs the true labels",))
    if gain is not None and guess is not None:
        added = printer.quantity(gain)
        remark = ("right guesses over those from the features alone",)
        yield Tile("The release adds", f"{added.points} points", added.words, added.mark, remark)


def _parts(pieces: Sequence[Piece]) -> Iterator[Section]:
    """Yield the private columns or releases, the worst first, where there are several."""
    if pieces:
        kind = kind_of(pieces)
        heading = _HEADINGS[kind]
        if any("/" in piece.key for piece in pieces):
            heading = "Releases and their columns"
        answers = [Answer(p.look, p.title, f"{p.verdict}.", "", p.place) for p in pieces]
        headers, body = table_of(pieces)
        table = Table(headers[:-1], tuple(cells[:-1] for cells in body))
        yield Section(
            *("parts", f"{heading}, the worst first"),
            answers=tuple(answers),
            tables=((f"{heading}, the worst first", table),),
        )


def _piece(piece: Piece) -> list[Section]:
    """Return a part of several, with less of it at each level."""
    result, printer = piece.result, piece.printer
    words = result.mechanism.description
    facts = [("Claim", _claim(result, printer)), *([("In words", shown(words))] if words else [])]
    warnings = notes_of(result.notes, "warning")
    found = tuple(one.small() for one in sections_of(result, printer, f"{piece.place}-"))
    sentence = " ".join(" ".join(pair) for pair in _banner(result).sentences)
    whole = Section(
        piece.place,
        piece.title,
        (sentence,),
        pairs=(*facts, *piece.found.items()),
        answers=tuple(_answer(check, printer, numbers=True) for check in result.checks),
        notes=(("Warnings", warnings),) if warnings else (),
        within=found,
    )
    alone = replace(whole, within=tuple(one for one in found if not one.key.endswith("-more")))
    return [
        replace(version, sentences=tuple(filter(None, (sentence, left))))
        for version, left in zip(
            (whole, alone.without("folded"), alone.without("folded", "figures")),
            LEFT_OUT,
            strict=True,
        )
    ]


def _checks(result: AuditResult, printer: Printer) -> Section:
    warnings = notes_of(result.notes, "warning")
    checks = result.checks
    detail = Table(_CHECKS, tuple(_check_row(check, printer) for check in checks))
    rests = tuple(
        (check.id, "; ".join(shown(result.title(i)) for i in check.evidence[:_MOST_ITEMS]))
        for check in checks
        if check.evidence
    )
    based = [("What each is based on", rests)] if rests else []
    lines = tuple(("", f"{line}.") for line in wording.correction_lines(result))
    corrected = [("", lines)] if lines else []
    folded = Section(
        "check-limits",
        "The checks, with their limits",
        tuple(f"{check.id}: {shown(check.question)}" for check in checks),
        tables=(("Answers and limits", detail),),
        notes=(*based, *corrected),
    )
    warned = tuple(("", text) for _, text in warnings)
    return Section(
        "checks",
        "Checks",
        missing="" if checks else "The policy has no checks, so nothing was judged.",
        answers=tuple(_answer(check, printer) for check in checks),
        notes=(("Warnings", warned),) if warned else (),
        folded=(folded,) if checks else (),
    )


def _answer(check: Check, printer: Printer, *, numbers: bool = False) -> Answer:
    observed, limit = printer.observed_and_limit(check)
    reason = shown(check.reason)
    warns, word = is_warning(check), answer_word(check)
    if check.verdict == "pass" and reason:  # The mark says that nothing was found.
        texts = [f"{reason[:1].upper()}{reason[1:]}."]
    else:
        texts = [f"{word}{': ' if reason else ''}{reason}."]
    if numbers and limit != "–":
        texts.append(f"{observed} against {limit}.")
    if waiver := wording.waiver_line(check):
        texts.append(f"{waiver[:1].upper()}{waiver[1:]}.")
    quiet = "" if check.level == "error" or warns else "Only warns."
    look = "inconclusive" if warns else check.verdict
    return Answer(look, check.id, " ".join(texts), quiet)


def _check_row(check: Check, printer: Printer) -> tuple[str, ...]:
    level, p = check.confidence, check.p_value
    sure = "–" if level is None else percent(level) if 0 < level < 1 else number(level)
    return (
        check.id,
        answer_word(check),
        *printer.observed_and_limit(check),
        sure,
        "–" if p is None else number(p),
        "decides the verdict" if check.level == "error" else "a warning only",
    )


def _audited(result: AuditResult, printer: Printer) -> Section:
    """Return what was measured in the release, declared by it, and derived from the declaration."""
    release, mechanism = result.release, result.mechanism
    label, words, before = release.label, mechanism.description, release.before
    measured = (
        (counted_as(mechanism.name).capitalize(), rows(release.rows)),
        ("Feature columns", rows(release.features)),
        _held(result),
        *([("Label column", name(label))] if label is not None else []),
        ("True labels", wording.truth_given(result)),
        *([("From before the noise", wording.before_words(before))] if before else []),
    )
    declared = (
        ("Mechanism", name(mechanism.name)),
        ("Declared", wording.SOURCES[mechanism.declared]),
        *([("In words", shown(words))] if words else []),
    )
    derived = _derived(result, printer)
    nothing = "" if derived else "Nothing: the declaration does not say how labels were changed."
    pairs = [
        (name(str(key)), _parameter(value))
        for key, value in list(mechanism.parameters.items())[:_MOST_ITEMS]
    ]
    classes, most = release.class_names, ", ".join(map(name, release.class_names[:_MOST_ITEMS]))
    if classes:
        pairs.append(("Classes", most if len(classes) <= _MOST_ITEMS else f"{most} …"))
    pairs.append(("SHA-256 of the file", _digest(result)))
    return Section(
        "audited",
        "What was audited",
        within=(
            Section("measured", "Measured in the release", pairs=measured),
            Section("declared", "Declared, no evidence", pairs=declared),
            Section(
                *("derived", "Derived from the declaration", (nothing,) if nothing else ()),
                quantities=derived[:_DERIVED],
            ),
        ),
        folded=(
            Section(
                "declaration", "The declaration", quantities=derived[_DERIVED:], pairs=tuple(pairs)
            ),
        ),
    )


def _digest(result: AuditResult) -> str:
    if result.releases:
        return ", ".join(map(_digest, result.releases))
    none = "none (a table in memory, or a file with true labels in it)"
    return name(result.release.sha256 or none)


def _derived(result: AuditResult, printer: Printer) -> tuple[Quantity, ...]:
    """Return what follows from the declaration alone, and ε of several columns or releases."""
    exact = (e for e in result.estimates if e.kind == "exact")
    return printer.quantities(
        e for e in exact if e.section == "mechanism" or (e.section == "person" and is_epsilon(e))
    )


def _parameter(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value, digits=6)
    if not isinstance(value, list | tuple):
        return shown(str(value), 200)
    if value and all(isinstance(row, list | tuple) for row in value):
        return f"{len(value)} × {len(value[0])} matrix, in the JSON result"
    if len(value) > 12:
        return f"{len(value)} values, in the JSON result"
    return ", ".join(map(_parameter, value))


def _appendix(result: AuditResult, printer: Printer, pieces: Sequence[Piece], most: int) -> Section:
    """Return what is looked up: every number by its id, assumptions, how to reproduce it."""
    numbers = numbers_of(result, printer, most)
    methods: dict[str, int] = {}
    body = tuple(_number_row(quantity, methods) for quantity in numbers)
    left = len(result.estimates) - len(numbers)
    more = f"{rows(left)} more numbers, of single attacks first, are in the JSON result."
    headers = ("Id", "Value", "Unit", "n", "Count", "Method")
    audits = tuple(
        (
            shown(wording.audit_name(record.id)),
            record.status,
            shown(record.reason) or "–",
            f"{number(record.seconds, digits=1)} s",
        )
        for record in result.audits
    )
    ran = Table(("Audit", "Status", "Reason", "Time"), audits)
    run = (
        *run_pairs(result.run, "built in"),
        ("Result", f"schema {result.schema_version}, ldpaudit {name(result.ldpaudit_version)}"),
        *versions_of(result.run, wording.plugin_words(wording.plugins_of(result))),
    )
    remarks = notes_of(result.notes, "info")
    listed = Table(headers, body, more if left else "")
    numbered = tuple((str(place), text) for text, place in methods.items())
    folded = (
        READING,
        Section(
            *("numbers", "Numbers by their ids"),
            tables=(("Every number by its id", listed),),
            notes=(("How each was computed, by the number in the last column", numbered),),
        ),
        *_numbers_of_parts(pieces, most),
        assumptions_section([result], most=6),
        *((Section("remarks", "Remarks", notes=(("", remarks),)),) if remarks else ()),
        _audited(result, printer),
        Section("audits", "Which audits ran", tables=(("Which audits ran", ran),)),
        Section(
            *("reproduce", "How to reproduce it"), pairs=run, code=shown(result.run.command, 2000)
        ),
        Section("terms", "More words", pairs=wording.TERMS),
    )
    intro = ("Unfold what you want to look up. What is unfolded is printed, too.",)
    return Section("appendix", "All numbers", intro, folded=folded)


READING: Final = Section(
    "reading",
    "How to read the numbers",
    ("Lower ends are rounded down and upper ends up. All ε, losses and divergences are in nats.",),
    pairs=tuple(wording.MARKS.items()),
)


def _number_row(quantity: Quantity, methods: dict[str, int]) -> tuple[Cell, ...]:
    """Return a number by its id; many share a method, so each is printed once, by its number."""
    e = quantity.estimate
    reference = f" ({shown(e.reference, 200)})" if e.reference else ""
    method = (shown(e.method) or "not stated") + reference
    place = methods.setdefault(method, len(methods) + 1)
    counts = ("–" if count is None else rows(count) for count in (e.n, e.count))
    return e.id, quantity, e.unit, *counts, str(place)


def numbers_of(result: AuditResult, printer: Printer, most: int) -> tuple[Quantity, ...]:
    """Return the numbers that the page lists; all evidence of checks, even beyond ``most``."""
    # Evidence comes first, then the others, then scores; those of single attacks and of groups come
    # last: they have tables of their own.
    evidence = {identifier for check in result.checks for identifier in check.evidence}

    def fineness(estimate: Estimate) -> tuple[bool, bool, bool]:
        score = estimate.score
        single = score is not None and (score.subject != "best" or score.group != "")
        return estimate.id not in evidence, score is not None, single

    ranked = sorted(result.estimates, key=fineness)[: max(most, len(evidence))]
    chosen = {estimate.id for estimate in ranked}
    return printer.quantities(e for e in result.estimates if e.id in chosen)


def _numbers_of_parts(pieces: Sequence[Piece], most: int) -> Iterator[Section]:
    """Yield the numbers of all parts, those of one id in one row."""
    if not pieces:
        return
    by_id: dict[str, dict[str, Quantity]] = {}
    for piece in pieces:
        for quantity in numbers_of(piece.result, piece.printer, most):
            by_id.setdefault(quantity.id, {})[piece.key] = quantity
    body: list[tuple[Cell, ...]] = []
    for identifier, found in by_id.items():
        first = next(iter(found.values()))
        unit = f"; {first.estimate.unit}" if first.estimate.unit != "1" else ""
        texts = {
            key: " ".join((q.text, *([f"({q.interval})"] if q.interval else [])))
            for key, q in found.items()
        }
        cells = (texts.get(piece.key, "–") for piece in pieces)
        body.append((identifier, f"{first.words}{unit}", *cells))
    left = sum(len(piece.result.estimates) for piece in pieces) - sum(map(len, by_id.values()))
    remark = f"{rows(left)} more numbers are in the JSON result." if left else ""
    table = Table(("Id", "What", *(piece.short for piece in pieces)), tuple(body), remark)
    title = f"Each {kind_of(pieces).lower()}: numbers by their ids"
    yield Section("numbers-of-parts", title, tables=((title, table),))


def notes_of(notes: Iterable[Note], level: str, before: str = "") -> tuple[Pair, ...]:
    """Return the notes of one level once, each with the name of its audit after ``before``."""
    found = (
        (f"{before}{shown(wording.audit_name(note.audit))}", shown(note.text))
        for note in notes
        if note.level == level
    )
    return tuple(dict.fromkeys(found))


def assumptions_section(results: Iterable[AuditResult], most: int) -> Section:
    """Return each assumption once, with at most so many of the numbers that need it."""
    needed: dict[str, dict[str, None]] = {}
    for result in results:
        for part in (*result.estimates, *result.curves, *result.histograms):
            for assumption in part.assumptions:
                sentence = shown(assumption[:1].upper() + assumption[1:])
                needed.setdefault(sentence, {})[shown(part.title)] = None
    items = []
    for text, titles in needed.items():
        more = f" and {len(titles) - most} more" if len(titles) > most else ""
        items.append(("", f"{text} Needed by: {'; '.join([*titles][:most])}{more}."))
    notes = (("", tuple(items)),) if items else ()
    return Section("assumptions", "Assumptions", () if items else ("None.",), notes=notes)


def run_pairs(run: RunInfo, no_policy: str) -> Iterator[Pair]:
    """Yield how a run was made, without its result's versions."""
    yield "Seed", "not fixed" if run.seed is None else str(run.seed)
    yield "Threads", rows(run.threads)
    yield "Time", f"{number(run.seconds, digits=1)} s"
    yield "Policy", f"SHA-256 {name(run.policy_sha256)}" if run.policy_sha256 else no_policy


def versions_of(run: RunInfo, plugins: str) -> Iterator[Pair]:
    """Yield the versions of Python and of the libraries, and parts of other packages."""
    versions = (f"{name(key)} {name(value)}" for key, value in sorted(run.versions.items()))
    yield "Versions", ", ".join(versions)
    if plugins:
        yield "Plug-ins", plugins
