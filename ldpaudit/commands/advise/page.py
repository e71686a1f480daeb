"""The page of advice: what to release, the frontier of leakage against utility, every candidate."""

from collections.abc import Sequence
from typing import Final

from ldpaudit.commands.advise.result import (
    NOT_RELEASED,
    ORDER,
    Advice,
    Candidate,
    Dropped,
    recommended,
    shown,
)
from ldpaudit.reports.charts.figure import Figure, Table
from ldpaudit.reports.charts.planes import MOST_LINES, Path, Spot, frontier_figure
from ldpaudit.reports.pages.page import Section, Tile, render_sheet
from ldpaudit.result.access import CONFIDENTIAL
from ldpaudit.result.numbers import number, percent, rows

_CANDIDATES: Final = ("Mechanism", "ε (nats)", "Labels guessed right", "Use", "Passes", "Why not")
_LIMITS: Final = ("", "Mechanism", "What is limited", "Reached", "Allowed", "Kept", "Sure")
_USES: Final = {
    "classification": "accuracy of a model that learns from the release",
    "regression": "squared error of a model that learns from the release",
    "counts": "typical error of a label's share",
}


def advice_page(advice: Advice) -> str:
    """Return the page."""
    parts = [_recommended(advice), _frontier(advice)]
    if advice.dropped:
        parts.append(_left_out(advice.dropped))
    run = advice.run
    tiles = [
        Tile("rows of the table", rows(run.rows)),
        Tile("rows reported on", rows(run.reported), "nothing was learnt from them"),
        Tile("simulated releases", str(run.simulated)),
    ]
    if advice.recommendations:
        epsilon = number(advice.recommendations[0].epsilon)
        tiles.insert(0, Tile("ε of the first choice (nats)", epsilon))
    return render_sheet(
        what="Advice before releasing",
        title=f"For {run.use}, {rows(run.rows)} rows",
        lead=advice.sentence,
        tiles=tuple(tiles),
        sections=tuple(parts),
        more=(_limits(advice), _everything(advice)),
        notes=(
            NOT_RELEASED,
            "No violation found is not a proof of privacy: a stronger attack may exist. Audit the "
            "release itself before it is published: ldpaudit run.",
            f"All intervals hold together at {percent(run.level)}, whichever release is chosen, "
            "given that rows are independent.",
            *advice.notes,
        ),
        access=CONFIDENTIAL,
    )


def _part(key: str, title: str, intro: str, missing: str, *tables: tuple[str, Table]) -> Section:
    """Return a part of tables, or that it is missing where the first has no row."""
    if not tables[0][1].rows:
        return Section(key, title, (intro,), missing=missing)
    return Section(key, title, (intro,), tables=tables)


def _recommended(advice: Advice) -> Section:
    head, body = recommended(advice)
    commands = tuple(
        (str(place), one.command) for place, one in enumerate(advice.recommendations, 1)
    )
    intro = (
        "The best releases that meet the policy, utility and leakage side by side. "
        f"{ORDER} Certified: an interval that needs independent rows only; exact: no chance in it; "
        "estimated: with the assumptions that the JSON file names."
    )
    made = ("The command to make each", Table(("", "Command"), commands))
    table = ("Recommended", Table(head, tuple(body)))
    return _part("recommended", "What to release", intro, advice.sentence, table, made)


def _frontier(advice: Advice) -> Section:
    intro = (
        "Each mark is one mechanism at one ε that was simulated. Further left, attackers learn "
        f"less; further {'up' if advice.run.use == 'classification' else 'down'}, the release is "
        "worth more. Filled: it met the policy; orange: it broke a limit."
    )
    figure = _figure(advice)
    missing = "" if figure is not None else "Not drawn: no release was simulated."
    figures = () if figure is None else (figure,)
    return Section("frontier", "Leakage against utility", (intro,), figures, missing=missing)


def _figure(advice: Advice) -> Figure | None:
    able = sorted(
        (one for one in advice.candidates if one.utility is not None),
        key=lambda one: -one.epsilon,
    )
    names = list(dict.fromkeys(one.mechanism for one in able))[:MOST_LINES]
    paths = [
        Path(name, tuple(_spot(one) for one in able if one.mechanism == name)) for name in names
    ]
    axes, none = ("labels guessed right", _USES[advice.run.use]), (None, None)
    return frontier_figure("Leakage against utility", paths, axes, none, _table(advice))


def _spot(one: Candidate) -> Spot:
    x, y = one.accuracy or 0.0, one.utility or 0.0
    label = f"ε = {one.epsilon:.4g}"
    return Spot(x, y, (x, x), (y, y), label, "pass" if one.passes else "fail")


def _table(advice: Advice) -> Table:
    return Table(
        _CANDIDATES,
        tuple(
            (
                one.mechanism,
                number(one.epsilon),
                "–" if one.accuracy is None else number(one.accuracy),
                "–" if one.utility is None else number(one.utility),
                "yes" if one.passes else "no",
                one.why_not,
            )
            for one in advice.candidates
        ),
    )


def _everything(advice: Advice) -> Section:
    intro = "Every release that was looked at, and why it is not recommended."
    missing, table = "There is no candidate.", ("Candidates", _table(advice))
    return _part("candidates", "Every candidate", intro, missing, table)


def _limits(advice: Advice) -> Section:
    body = tuple(
        (
            str(place),
            choice.mechanism,
            limit.title,
            number(limit.value),
            number(limit.limit),
            "yes" if limit.passes else "not shown",
            limit.kind,
        )
        for place, one in enumerate(advice.recommendations, 1)
        for choice in one.choices
        for limit in choice.limits or ()
    )
    intro = "What the policy limits, and what the audit of the first simulated release reached."
    missing = "No release was simulated, or the policy limits nothing that noise changes."
    return _part("limits", "The policy's limits", intro, missing, ("Limits", Table(_LIMITS, body)))


def _left_out(dropped: Sequence[Dropped]) -> Section:
    body = tuple(
        (
            str(one.columns),
            one.reason,
            "; ".join(f"{e.title}: {shown(e)}" for e in one.before.values()) or "–",
            "; ".join(f"{e.title}: {shown(e)}" for e in one.after.values()) or "–",
        )
        for one in dropped
    )
    head = ("Columns", "Why", "The features alone, before", "and after")
    intro = "Columns that give labels or people away, whatever the noise on the label."
    table = ("Columns to leave out", Table(head, body))
    return _part("left-out", "Columns to leave out", intro, "", table)
