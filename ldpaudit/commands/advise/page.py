"""The page of advice: what to release, the frontier of leakage against utility, every candidate."""

import math
from collections.abc import Sequence
from typing import Final

from ldpaudit.commands.advise.closed_forms.candidates import Candidate
from ldpaudit.commands.advise.closed_forms.leakage import Held
from ldpaudit.commands.advise.result import NOT_RELEASED, Advice, Choice, Dropped
from ldpaudit.commands.advise.text import recommended, shown
from ldpaudit.commands.sweep.page import axis_around
from ldpaudit.reports.charts import specifications as charts
from ldpaudit.reports.charts.frontier import (
    MOST_LINES,
    Path,
    Spot,
    frontier,
    sample_of,
    shape_of,
)
from ldpaudit.reports.charts.intervals import Figure, Table
from ldpaudit.reports.pages.page import Sheet, Tile, render_sheet
from ldpaudit.reports.parts.part import Part
from ldpaudit.reports.text.numbers import number, percent, rows
from ldpaudit.result.access import CONFIDENTIAL

_LEAKAGE: Final = "labels guessed right"
_CANDIDATES: Final = ("Mechanism", "ε (nats)", "Labels guessed right", "Expected use", "Passes")
_LIMITS: Final = ("", "Mechanism", "What is limited", "Reached", "Allowed", "Kept", "Sure")


def advice_page(advice: Advice) -> str:
    """Return the page."""
    parts = [_recommended(advice), *_frontiers(advice)]
    if advice.dropped:
        parts.append(_left_out(advice.dropped))
    sheet = Sheet(
        what="Advice before releasing",
        title=f"For {advice.request.use}, {rows(advice.rows)} rows",
        lead=advice.sentence,
        tiles=_tiles(advice),
        parts=tuple(parts),
        more=(_limits(advice), _everything(advice)),
        notes=_notes(advice),
        access=CONFIDENTIAL,
    )
    return render_sheet(sheet)


def _tiles(advice: Advice) -> tuple[Tile, ...]:
    tiles = [
        Tile("rows of the table", rows(advice.rows)),
        Tile("rows reported on", rows(advice.reported), "no choice has seen them"),
        Tile("simulated releases", str(advice.simulated)),
    ]
    if advice.recommendations:
        best = advice.recommendations[0]
        tiles.insert(0, Tile("ε of the first choice (nats)", number(best.epsilon)))
    return tuple(tiles)


def _notes(advice: Advice) -> tuple[str, ...]:
    return (
        NOT_RELEASED,
        "No violation found is not a proof of privacy: a stronger attack may exist. Audit the "
        "release itself before it is published: ldpaudit run.",
        f"Candidates were chosen on other rows than those that are reported on. All intervals hold "
        f"together at {percent(advice.level)}, given that rows are independent.",
        *advice.notes,
    )


def _recommended(advice: Advice) -> Part:
    head, body = recommended(advice)
    commands = tuple(
        (str(place), one.command) for place, one in enumerate(advice.recommendations, 1)
    )
    intro = (
        "The best that the policy lets pass, utility and leakage beside each other. Certified: an "
        "interval that needs independent rows only; exact: no chance in it; estimated: with the "
        "assumptions that the JSON file names."
    )
    if not body:
        return Part("recommended", "What to release", intro, missing=advice.sentence)
    tables = (
        ("Recommended", Table(head, tuple(body))),
        ("The command to make each", Table(("", "Command"), commands)),
    )
    return Part("recommended", "What to release", intro, tables=tables)


def _frontiers(advice: Advice) -> list[Part]:
    figure = _figure(advice)
    intro = (
        "Each mark is one mechanism at one ε, by closed forms. Further left, attackers learn less; "
        f"further {'up' if _higher(advice) else 'down'}, the release is worth more. Filled: within "
        "every limit of the policy; orange: beyond one."
    )
    missing = "" if figure is not None else "Not drawn: there is no candidate."
    figures = () if figure is None else (figure,)
    return [Part("frontier", "Leakage against utility", intro, figures, missing=missing)]


def _higher(advice: Advice) -> bool:
    return advice.request.use == "classification"


def _figure(advice: Advice) -> Figure | None:
    names = list(dict.fromkeys(one.name for one in _drawable(advice)))[:MOST_LINES]
    paths = [_path(advice, name) for name in names]
    spots = [spot for path in paths for spot in path.spots]
    if not spots:
        return None
    x = axis_around(_LEAKAGE, [spot.x for spot in spots], None)
    y = axis_around(_worth(advice), [spot.y for spot in spots], None)
    title = "Leakage against utility"
    description = " ".join(
        f"{path.label}: from {number(path.spots[0].x)} and {number(path.spots[0].y)} at the least "
        f"noise to {number(path.spots[-1].x)} and {number(path.spots[-1].y)} at the most."
        for path in paths
    )
    drawing = charts.draw(
        lambda width: frontier(paths, (None, None), x, y, width), title, description, "paths"
    )
    legend = tuple(
        (sample_of(place), f"{path.label} ({shape_of(place)})") for place, path in enumerate(paths)
    )
    return Figure("paths", title, description, drawing, _table(advice), legend)


def _drawable(advice: Advice) -> list[Candidate]:
    """Return candidates of finite worth, those first whose mechanism is recommended."""
    first = [choice.candidate.name for one in advice.recommendations for choice in one.choices]
    able = [one for one in advice.candidates if math.isfinite(one.worth.value)]
    return sorted(able, key=lambda one: first.index(one.name) if one.name in first else len(first))


def _path(advice: Advice, name: str) -> Path:
    return Path(
        name,
        tuple(
            Spot(
                x := one.leakage.guessed,
                y := one.worth.value,
                (x, x),
                (y, y),
                f"ε = {one.epsilon:.4g}",
                "pass" if advice.passes(one) else "fail",
            )
            for one in _drawable(advice)
            if one.name == name
        ),
    )


def _worth(advice: Advice) -> str:
    return advice.candidates[0].worth.title.lower()


def _table(advice: Advice) -> Table:
    return Table(
        _CANDIDATES,
        tuple(
            (
                one.name,
                number(one.epsilon),
                number(one.leakage.guessed),
                "∞" if math.isinf(one.worth.value) else number(one.worth.value),
                "yes" if advice.passes(one) else "no",
            )
            for one in advice.candidates
        ),
    )


def _everything(advice: Advice) -> Part:
    intro = "Every candidate by closed forms, on the rows that candidates were compared on."
    tables = (("Candidates", _table(advice)),) if advice.candidates else ()
    missing = "" if tables else "There is no candidate."
    return Part("candidates", "Every candidate", intro, tables=tables, missing=missing)


def _limits(advice: Advice) -> Part:
    body = tuple(
        _limit(place, choice, held)
        for place, one in enumerate(advice.recommendations, 1)
        for choice in one.choices
        for held in choice.held
    )
    intro = (
        "What the policy limits, and what each recommendation reaches on the rows that candidates "
        "were compared on; chance is allowed for by two standard errors. Not shown: two simulated "
        "audits let it pass, but they cannot tell on which side of the limit it lies."
    )
    tables = (("Limits", Table(_LIMITS, body)),) if body else ()
    missing = "" if tables else "The policy limits nothing that noise changes."
    return Part("limits", "The policy's limits", intro, tables=tables, missing=missing)


def _limit(place: int, choice: Choice, held: Held) -> tuple[str, ...]:
    return (
        str(place),
        choice.candidate.name,
        held.limit.title,
        number(held.value),
        number(held.most),
        "yes" if held.passes else "not shown",
        held.kind,
    )


def _left_out(dropped: Sequence[Dropped]) -> Part:
    body = tuple(
        (
            str(len(one.columns)),
            one.reason,
            "; ".join(f"{e.title}: {shown(e)}" for e in one.before) or "–",
            "; ".join(f"{e.title}: {shown(e)}" for e in one.after) or "–",
        )
        for one in dropped
    )
    head = ("Columns", "Why", "The features alone, before", "and after")
    intro = "Columns that give labels or people away, whatever the noise on the label."
    tables = (("Columns to leave out", Table(head, body)),)
    return Part("left-out", "Columns to leave out", intro, tables=tables)
