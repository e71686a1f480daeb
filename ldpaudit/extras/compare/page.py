"""The page of a comparison: the sentences, each release on its own, every number side by side."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from ldpaudit.doors import AuditResult, Estimate, number, percent
from ldpaudit.extras.compare.comparison import Comparison, Difference
from ldpaudit.extras.compare.overlay import overlay_figure
from ldpaudit.reports.charts.curves import MOST_LINES, NamedCurve, up_to
from ldpaudit.reports.charts.figure import Cell, Dash, Figure, Rule, Table, drawn
from ldpaudit.reports.charts.rows import Group, group_figure
from ldpaudit.reports.pages.audit import (
    LIMITS,
    READING,
    assumptions_section,
    notes_of,
    run_pairs,
    versions_of,
)
from ldpaudit.reports.pages.numbers import REFERENCES
from ldpaudit.reports.pages.page import GLOSSARY, Answer, Banner, Page, Section, render_page
from ldpaudit.reports.text import wording
from ldpaudit.reports.text.quantities import Printer, Quantity, measured_called
from ldpaudit.result import Score
from ldpaudit.result.answers import warnings_of, with_reason
from ldpaudit.result.harmless import PHRASE, name, shown
from ldpaudit.result.numbers import rows

_LOOKS: Final = {"publish": "pass", "do not publish": "fail"}
_TESTS: Final = ("test_accuracy", "test_squared_error")
_MEASURED: Final = "Measured ε"
_NUMBERS: Final = (
    ("Declared ε", ("mechanism.epsilon",)),
    (_MEASURED, ("mechanism.epsilon_lower", "release_only.epsilon_lower")),
    ("Strongest attack’s accuracy", ("attack.best.accuracy",)),
    ("Advantage over the features alone", ("attack.best.advantage",)),
    ("Strongest guess’s squared error", ("numeric.best.mse",)),
    ("Strongest guess within 5 % of the range", ("numeric.best.within_5",)),
    ("Mean loss E[ν]", ("instance_loss.mean_lower", "instance_loss.mean")),
    ("Model on test rows", _TESTS),
)
_FIRST: Final = (
    (
        *("attack.best.accuracy", "attack.features-only.accuracy"),
        *(
            "What the strongest attack guesses right, and what the features alone reveal",
            "accuracy",
        ),
    ),
    (
        *("numeric.best.mse", "numeric.features-only.mse"),
        "How far the strongest guess is off, and one from the features alone",
        "mean squared error",
    ),
)
"""The picture of the first screen: the strongest attack, and the features alone."""
_RENYI: Final = (
    *("renyi.release", "renyi.release.estimate", "renyi.double_rr_epsilon", "mechanism.rdp"),
)
_DATA: Final = (
    *("Release", "Read from", "Rows", "Classes", "Feature columns", "True labels"),
    *("SHA-256", "Rows with the first one’s features", "Differs in"),
)
_DIFFERENCES: Final = ("Number", "Which", "Difference", "Rows")
_PRINTED: Final = ("id", "title", "kind", "value", "level", "unit")
_MOST_ROWS_SHOWN: Final = 10
"""Rows of a picture of attacks: with the names of files it fits on a printed page."""
_ATTACKS: Final = (
    "An attack guesses every person's true label. The strongest attack may differ from release to "
    "release. Vertical lines show what an attacker without the released labels achieves: the "
    "majority guess, and a guess from the released features. Synthetic features make that guess "
    "worse too, so the advantage over it may rise while the accuracy falls. The advantage is what "
    "the released labels add."
)
_GUESSES: Final = (
    "An attack guesses every person's true number; the smaller its squared error, the more a "
    "release reveals. Guesses from other people's labels and from the features alone need no "
    "released label: compare the attacks with them."
)
Pair = tuple[str, AuditResult]
"""The name of a release and its result."""


def render_comparison(comparison: Comparison) -> str:
    """Return the page: a pure function of the comparison, the same text every time."""
    return render_page(page_of(comparison))


def page_of(comparison: Comparison) -> Page:
    """Return everything that the page shows."""
    pairs = [*zip(map(name, comparison.names.values()), comparison.releases, strict=True)]
    title = " against ".join(release for release, _ in pairs)
    forced = any(print_.mismatch for print_ in comparison.fingerprints)
    banner = Banner(
        "fail" if forced else "",
        "The data differ" if forced else "",
        tuple(map(_titled, comparison.sentences or (comparison.sentence,))),
        remark=shown(comparison.remark),
    )
    warnings, remarks = (_notes(comparison, pairs, level) for level in ("warning", "info"))
    answers = tuple(_decided(*pair) for pair in pairs)
    notes = (("Warnings", warnings),) if warnings else ()
    figures = _first_figures(pairs)
    seed, *others = run_pairs(comparison.run, "none given")
    sure = ("Confidence", f"{percent(comparison.confidence)}, for all differences together")
    schema = ("Result", f"schema {comparison.schema_version}")
    plugins = wording.plugin_words(comparison.run.plugins)
    run = (seed, sure, *others, schema, *versions_of(comparison.run, plugins))
    folded = (
        READING,
        _tabled("releases", "The releases and their main numbers", _releases(pairs)),
        _tabled("data", "The data behind them", _data(comparison)),
        *(_guesses(pairs) or _attacks(pairs), _losses(pairs), _renyi(pairs), _utility(pairs)),
        _differences(comparison),
        assumptions_section(comparison.releases, most=4),
        *((Section("remarks", "Remarks", notes=(("", remarks),)),) if remarks else ()),
        Section(
            *("reproduce", "How to reproduce it"),
            code=shown(comparison.run.command, 2000),
            pairs=run,
        ),
        Section("terms", "More words", pairs=wording.TERMS),
    )
    intro = ("Unfold what you want to look up. What is unfolded is printed, too.",)
    sections = (
        Section("decisions", "Each release on its own", answers=answers),
        *((Section("picture", "Side by side", figures=figures, notes=notes),) if figures else ()),
        *((Section("picture", "Warnings", notes=notes),) if notes and not figures else ()),
        *(LIMITS, GLOSSARY, Section("appendix", "All numbers", intro, folded=folded)),
    )
    return Page(
        what="Comparison of releases",
        title=title,
        head=f"Comparison: {title}",
        sections=sections,
        access=comparison.access,
        banners=(banner,),
        version=name(comparison.ldpaudit_version),
    )


def _titled(sentence: str) -> tuple[str, str]:
    """Return what a sentence is about, and the rest of it."""
    title, colon, rest = shown(sentence, 3 * PHRASE).partition(": ")
    return (f"{title}:", rest) if colon else ("", title)


def _judged(result: AuditResult) -> str:
    """Return the verdict in words, and the first warning that stands beside it."""
    headline, warnings = wording.headline(result), warnings_of(result.checks)
    if result.verdict != "pass" or not warnings:
        return headline
    return shown(with_reason(headline, result))


def _decided(release: str, result: AuditResult) -> Answer:
    verdict, step = _judged(result), next(iter(result.next_steps), "")
    text = f"{release}: {verdict[:1].lower()}{verdict[1:]}."
    publish = f"Publish: {wording.publish_answer(result)}"
    quiet = f"Next: {shown(step)}" if step else ""
    return Answer(_LOOKS.get(result.decision, "inconclusive"), publish, text, quiet)


def _notes(
    comparison: Comparison, pairs: Sequence[Pair], level: str
) -> tuple[tuple[str, str], ...]:
    found = [*notes_of(comparison.notes, level)]
    for release, result in pairs:
        found += notes_of(result.notes, level, f"{release}, ")
    return tuple(dict.fromkeys(found))


def _tabled(key: str, title: str, table: Table) -> Section:
    return Section(key, title, tables=((title, table),))


def _data(comparison: Comparison) -> Table:
    body = []
    for one, result in zip(comparison.fingerprints, comparison.releases, strict=True):
        counts = map(rows, (one.rows, one.classes, one.features))
        source = "the released file" if one.source == "data" else "a stored result"
        digest = "none" if one.sha256 is None else f"{one.sha256[:12]}…"
        share = "–" if one.shared_rows is None else number(one.shared_rows)
        differs = shown(", ".join(one.mismatch)) or "nothing known"
        truth = wording.truth_given(result)
        body.append((name(one.name), source, *counts, truth, digest, share, differs))
    return Table(_DATA, tuple(body))


def _releases(pairs: Sequence[Pair]) -> Table:
    """Return a column for each release: what it is and its main numbers."""
    verdicts = (_judged(result) for _, result in pairs)
    body: list[tuple[Cell, ...]] = [
        ("Mechanism", *(_mechanism(result) for _, result in pairs)),
        ("Judged on its own", *verdicts),
    ]
    for title, ids in _NUMBERS:
        cells = [_number(result, ids, title == _MEASURED) for _, result in pairs]
        known = [cell for cell in cells if cell is not None]
        if known:
            called = measured_called(known)
            epsilon = called if called == _MEASURED else f"{called}: ε"
            body.append(
                (epsilon if title == _MEASURED else title, *(cell or "–" for cell in cells))
            )
    return Table(("", *(release for release, _ in pairs)), tuple(body))


def _mechanism(result: AuditResult) -> str:
    noise, text = result.mechanism.parameters.get("lambda"), name(result.mechanism.name)
    return f"{text}, λ = {noise:.4g}" if isinstance(noise, int | float) else text


def _number(result: AuditResult, ids: Sequence[str], decisive: bool) -> Quantity | None:
    """Return the first number that there is; if ``decisive``, the one behind the verdict."""
    estimate, printer = next(filter(None, map(result.estimate, ids)), None), Printer(result)
    if decisive and printer.decisive is not None:
        return printer.decisive
    return None if estimate is None else printer.quantity(estimate)


def _first_figures(pairs: Sequence[Pair]) -> tuple[Figure, ...]:
    """Return the picture of the first screen: the strongest attack and the features alone."""
    for best, alone, title, axis in _FIRST:
        groups = _groups(pairs, (best, alone), row_title)
        if groups and groups[0][1][0][1].id == best:
            return (group_figure(("first", title, axis), groups, group_table(groups)),)
    return ()


def _groups(
    pairs: Sequence[Pair], ids: Iterable[str], title: Callable[[Estimate], str] | None = None
) -> list[Group]:
    """Return the numbers of some ids, those of all releases together, titled as the first is."""
    groups: list[Group] = []
    for identifier in ids:
        members = [
            (release, Printer(result).quantity(estimate))
            for release, result in pairs
            if (estimate := result.estimate(identifier)) is not None
        ]
        if members:
            first = members[0][1]
            groups.append((title(first.estimate) if title else first.name, members))
    return groups


def group_table(groups: Sequence[Group], first: str = "") -> Table:
    """Return a table with a row for each group and a column for each release."""
    names = list(dict.fromkeys(name for _, members in groups for name, _ in members))
    body: list[tuple[Cell, ...]] = []
    for title, members in groups:
        cells = dict(members)
        body.append((title, *(cells.get(name, "–") for name in names)))
    return Table((first, *names), tuple(body))


def row_title(estimate: Estimate) -> str:
    """Return what a score is a score of."""
    return name(estimate.score.row if estimate.score else estimate.title)


def _scores(pairs: Sequence[Pair], section: str) -> dict[str, tuple[Score, float]]:
    """Return the scores of a section by their ids, each with its largest value."""
    found: dict[str, tuple[Score, float]] = {}
    for e in (e for _, result in pairs for e in result.estimates if e.section == section):
        if e.score is not None:
            found[e.id] = e.score, max(e.value, found.get(e.id, (e.score, e.value))[1])
    return found


def _guesses(pairs: Sequence[Pair]) -> Section | None:
    """Return the attacks on numbers side by side, None where there are none."""
    scores = {i: score for i, (score, _) in _scores(pairs, "numeric-inference").items()}
    if not scores:
        return None
    # The strongest first, then guesses without a release, then each attack.
    ranks = {subject: place for place, subject in enumerate(("best", "prior", "features-only"))}
    order = sorted(scores, key=lambda i: ranks.get(scores[i].subject, len(ranks)))
    errors = _groups(pairs, (i for i in order if scores[i].measure == "mse"), row_title)
    title = "Mean squared error of each guess, with its interval"
    titles = ("attacks", title, "squared label units")
    figures = (group_figure(titles, errors, group_table(errors)),) if errors else ()
    table = group_table(_groups(pairs, order), "Score")
    tables = (("Every score on every release", table),)
    return Section("attacks", "Attacks side by side", (_GUESSES,), figures, tables=tables)


def _attacks(pairs: Sequence[Pair]) -> Section:
    every = _scores(pairs, "label-inference").items()
    best = {i: both for i, both in every if both[0].measure == "accuracy" and not both[0].group}
    order = sorted(best, key=lambda i: (best[i][0].subject != "best", -best[i][1]))
    attacks = [i for i in order if best[i][0].subject not in REFERENCES]
    groups = _groups(pairs, attacks, row_title)
    if not groups:
        why = wording.missing(pairs[0][1].audits, "label-inference")
        return Section("attacks", "Attacks side by side", (_ATTACKS,), missing=why)
    references = [i for i in order if i not in attacks]
    table = group_table(_groups(pairs, [*attacks, *references], row_title), "Attack")
    titles = ("attacks", "Accuracy of each attack, with its interval", "accuracy")
    drawn = groups[: max(1, _MOST_ROWS_SHOWN // len(pairs))]
    figure = group_figure(titles, drawn, group_table(groups), _rules(pairs))
    tables = [("Every attack on every release", table)]
    if sliced := _groups(pairs, (i for i, (score, _) in every if score.group), _sliced):
        tables.append(("The strongest attack by class and slice", group_table(sliced, "Rows")))
    text = (_ATTACKS,)
    return Section("attacks", "Attacks side by side", text, (figure,), tables=tuple(tables))


def _sliced(estimate: Estimate) -> str:
    return shown(estimate.score.title if estimate.score else estimate.title, 80)


def _rules(pairs: Sequence[Pair]) -> list[Rule]:
    rules = []
    if (prior := pairs[0][1].estimate("attack.prior.accuracy")) is not None:
        text = Printer(pairs[0][1]).quantity(prior).text
        rules.append(Rule(prior.value, "majority", f"majority guess: {text}", 1))
    dashes: tuple[Dash, ...] = (2, 3)
    for (release, result), dash in zip(pairs[:2], dashes, strict=False):
        if (alone := result.estimate("attack.features-only.accuracy")) is not None:
            legend = f"features alone, {release}: {Printer(result).quantity(alone).text}"
            rules.append(Rule(alone.value, f"features, {release}", legend, dash))
    return rules


def _curves(pairs: Sequence[Pair], identifier: str) -> list[NamedCurve]:
    found = ((release, result, result.curve(identifier)) for release, result in pairs)
    return [(release, result, curve) for release, result, curve in found if curve and curve.x]


def _losses(pairs: Sequence[Pair]) -> Section:
    curves = _curves(pairs, "instance_loss.exceedance")
    title = shown(curves[0][2].title) if curves else ""
    figure = overlay_figure("loss", title, curves, "share of people") if curves else None
    ids = ("instance_loss.mean_lower", "instance_loss.mean")
    table = group_table(_groups(pairs, ids), "Number")
    return Section(
        "loss",
        "Instance-based loss",
        (
            "ν is what features and label together reveal about one person's true label, in nats. "
            "A lower curve leaves fewer people with a large loss. The table has the curves' lower "
            "ends.",
        ),
        drawn([figure]),
        tables=(("Mean loss", table),) if table.rows else (),
        missing="" if figure else wording.missing(pairs[0][1].audits, "instance-loss"),
    )


def _renyi(pairs: Sequence[Pair]) -> Section:
    by_id = [_curves(pairs, identifier) for identifier in _RENYI]
    measured = [max(curve.x) for curves in by_id[:3] for *_, curve in curves]
    if measured:
        by_id[-1] = [(n, result, up_to(c, max(measured))) for n, result, c in by_id[-1]]
    every = [each for curves in by_id for each in curves]
    drawings = [("renyi", "Rényi divergence by order", every)] if every else []
    if len(every) > MOST_LINES:
        named = [(f"renyi-{i}", curves) for i, curves in enumerate(by_id) if curves]
        drawings = [(key, shown(curves[0][2].title), curves) for key, curves in named]
    figures = drawn(overlay_figure(*drawing, "nats") for drawing in drawings)
    return Section(
        "renyi",
        "Rényi curves",
        (
            "The Rényi divergence of order α measures how far apart the outputs for two true "
            "labels can be. An exact curve follows from the declaration alone, a certified one is "
            "a lower bound, and an estimated one depends on the assumptions listed for it. Compare "
            "only curves of the same kind.",
        ),
        figures,
        missing="" if figures else wording.missing(pairs[0][1].audits, "renyi"),
    )


def _utility(pairs: Sequence[Pair]) -> Section:
    groups = _groups(pairs, _TESTS)
    figures = tuple(
        group_figure((f"utility-{i}", group[0], group[0].lower()), [("", group[1])], table)
        for i, group in enumerate(groups)
        for table in [group_table([group])]
    )
    methods = tuple(
        (release, shown(estimate.method))
        for release, result in pairs
        for estimate in filter(None, map(result.estimate, _TESTS))
    )
    table = Table(("Release", "How the model was trained and scored"), methods)
    return Section(
        "utility",
        "What can still be learnt",
        (
            "A model of the true label is trained on each release alone, with a loss corrected for "
            "the mechanism, and scored on rows that no release contains.",
        ),
        figures,
        tables=(("Training", table),) if methods else (),
        missing=""
        if groups
        else "Not measured: no test rows with true labels were given (--test).",
    )


def _differences(comparison: Comparison) -> Section:
    """Return every difference."""
    body, sure = tuple(_difference_rows(comparison)), percent(comparison.confidence)
    headers = (*_DIFFERENCES, f"Together at {sure}")
    return Section(
        "differences",
        "Differences",
        (
            "Each number of a later release minus that of the first. Paired differences score the "
            "same rows in both releases.",
            f"The intervals marked in the last column hold together at {sure} "
            "confidence (Bonferroni: half of the error for the best attack, its advantage and the "
            "test rows, half for all others). The rest hold at their own level.",
        ),
        tables=(("Every difference", Table(headers, body)),) if body else (),
        missing="" if body else "No number was measured for two releases.",
    )


def _difference_rows(comparison: Comparison) -> Iterator[tuple[Cell, ...]]:
    printer, names = Printer(comparison.releases[0]), comparison.names
    for one in comparison.differences:
        which = " minus ".join(name(names[letter]) for letter in (one.b, one.a))
        paired = "–" if one.level is None else "paired" if one.paired else "not paired"
        family = "yes" if one.simultaneous else "–"
        yield shown(one.title, 80), which, signed(one, printer), paired, family


def signed(difference: Difference, printer: Printer) -> Quantity:
    """Return a difference as people read it, with its sign."""
    fields = difference.model_dump(include=set(_PRINTED))
    if difference.level is not None:
        fields |= {"low": difference.low, "high": difference.high, "side": "two-sided"}
    quantity = printer.quantity(Estimate.model_validate(fields))
    plus = "+" if difference.value > 0 and not quantity.text.startswith("0 ") else ""
    return replace(quantity, text=plus + quantity.text)
