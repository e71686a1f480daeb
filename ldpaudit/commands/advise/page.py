"""What advice says: on the terminal, and on its page with the frontier and every candidate."""

from typing import Final

from ldpaudit.commands.advise.result import Advice, Candidate
from ldpaudit.reports.charts.figure import Table
from ldpaudit.reports.charts.planes import MOST_LINES, Path, Spot, frontier_figure
from ldpaudit.reports.pages.page import Section, Tile, render_sheet
from ldpaudit.result import Estimate
from ldpaudit.result.access import CONFIDENTIAL
from ldpaudit.result.numbers import number, percent, rows
from ldpaudit.terminal import say, show

ORDER: Final = (
    "In this order: first what no interval shows to be worth less than the best, and of these what "
    "the closed form expects to err least."
)
_NOT_RELEASED: Final = (
    "Nothing was released. Simulated releases were drawn with a seeded generator and are not kept."
)
# Headers for numbers, by their ids.
_SHORT: Final = {
    "test_accuracy": "Learner's accuracy",
    "test_squared_error": "Learner's squared error",
    "share_error": "Error of a share",
    "advice.accuracy": "Guessed right",
    "advice.advantage": "Beyond the features",
    "advice.exceedance": "Lose too much",
}
_CANDIDATES: Final = ("Mechanism", "ε (nats)", "Labels guessed right", "Use", "Passes", "Why not")
_LIMITS: Final = ("", "Mechanism", "What is limited", "Reached", "Allowed", "Kept", "Sure")
_DROPPED: Final = ("Columns", "Why", "The features alone, before", "and after")
_USES: Final = {
    "classification": "accuracy of a model that learns from the release",
    "regression": "squared error of a model that learns from the release",
    "counts": "typical error of a label's share",
}


def print_advice(advice: Advice, *, quiet: bool) -> None:
    """Print what to release, and the command to make it."""
    if not quiet:
        say(CONFIDENTIAL)
    say(advice.sentence)
    if quiet:
        for recommendation in advice.recommendations[:1]:
            say(recommendation.command)
        return
    for dropped in advice.dropped:
        say(f"  {'left out':<12} {', '.join(dropped.names)}: {dropped.reason}")
    if advice.recommendations:
        found = advice.outcome == "found"
        title = "Releases that meet the policy" if found else "What to try first, by closed form"
        show(title, *_recommended(advice))
        if found and len(advice.recommendations) > 1:
            say(ORDER)
        for place, one in enumerate(advice.recommendations, 1):
            say(f"  {place}. {one.command}")
    for text in advice.notes:
        say(f"  {'note':<12} {text}")
    say(f"All intervals hold together at {percent(advice.run.level)}. {_NOT_RELEASED}")


def _recommended(advice: Advice) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return headers, and a row for each private column of each recommendation."""
    choices = [
        (str(place) if one.labels is None else f"{place}, column {column}", choice)
        for place, one in enumerate(advice.recommendations, 1)
        for column, choice in enumerate(one.choices, 1)
    ]
    ids = dict.fromkeys(name for _, choice in choices for name in choice.numbers)
    head = ("", "Mechanism", "ε (nats)", *(_SHORT.get(name, name) for name in ids), "Sure")
    return head, tuple(
        (
            *(place, choice.mechanism, number(choice.epsilon)),
            *(_shown(choice.numbers[n]) if n in choice.numbers else "–" for n in ids),
            choice.kind if choice.simulated else f"{choice.kind}, not simulated",
        )
        for place, choice in choices
    )


def _shown(estimate: Estimate) -> str:
    """Return a number with its interval."""
    if estimate.low is None or estimate.high is None:
        return number(estimate.value)
    low, high = number(estimate.low, "down"), number(estimate.high, "up")
    return f"{number(estimate.value)} [{low}, {high}]"


def advice_page(advice: Advice) -> str:
    """Return the page."""
    run, found = advice.run, advice.recommendations
    tiles = [
        *(Tile("ε of the first choice (nats)", number(one.epsilon)) for one in found[:1]),
        Tile("rows of the table", rows(run.rows)),
        Tile("rows reported on", rows(run.reported), "nothing was learnt from them"),
        Tile("simulated releases", str(run.simulated)),
    ]
    sections = [_recommendations(advice), _frontier(advice), *_left_out(advice)]
    return render_sheet(
        what="Advice before releasing",
        title=f"For {run.use}, {rows(run.rows)} rows",
        lead=advice.sentence,
        tiles=tuple(tiles),
        sections=tuple(sections),
        more=(_limits(advice), _everything(advice)),
        notes=(
            _NOT_RELEASED,
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


def _recommendations(advice: Advice) -> Section:
    commands = tuple((str(i), one.command) for i, one in enumerate(advice.recommendations, 1))
    intro = (
        f"The best releases that meet the policy, utility and leakage side by side. {ORDER} "
        "Certified: an interval that needs independent rows only; exact: no chance in it; "
        "estimated: with the assumptions that the JSON file names."
    )
    made = ("The command to make each", Table(("", "Command"), commands))
    table = ("Recommended", Table(*_recommended(advice)))
    return _part("recommended", "What to release", intro, advice.sentence, table, made)


def _frontier(advice: Advice) -> Section:
    use, title = advice.run.use, "Leakage against utility"
    intro = (
        "Each mark is one mechanism at one ε that was simulated. Further left, attackers learn "
        f"less; further {'up' if use == 'classification' else 'down'}, the release is worth more. "
        "Filled: it met the policy; orange: it broke a limit."
    )
    able = [one for one in advice.candidates if one.utility is not None]
    able.sort(key=lambda one: -one.epsilon)
    names = list(dict.fromkeys(one.mechanism for one in able))[:MOST_LINES]
    paths = [Path(name, tuple(_spot(c) for c in able if c.mechanism == name)) for name in names]
    axes = ("labels guessed right", _USES[use])
    figure = frontier_figure(title, paths, axes, (None, None), _candidates(advice))
    if figure is None:
        missing = "Not drawn: no release was simulated."
        return Section("frontier", title, (intro,), missing=missing)
    return Section("frontier", title, (intro,), (figure,))


def _spot(one: Candidate) -> Spot:
    x, y = one.accuracy or 0.0, one.utility or 0.0
    label = f"ε = {one.epsilon:.4g}"
    return Spot(x, y, (x, x), (y, y), label, "pass" if one.passes else "fail")


def _candidates(advice: Advice) -> Table:
    body = tuple(
        (
            *(one.mechanism, number(one.epsilon)),
            *("–" if value is None else number(value) for value in (one.accuracy, one.utility)),
            *("yes" if one.passes else "no", one.why_not),
        )
        for one in advice.candidates
    )
    return Table(_CANDIDATES, body)


def _everything(advice: Advice) -> Section:
    intro = "Every release that was looked at, and why it is not recommended."
    missing, table = "There is no candidate.", ("Candidates", _candidates(advice))
    return _part("candidates", "Every candidate", intro, missing, table)


def _limits(advice: Advice) -> Section:
    body = tuple(
        (
            *(str(place), choice.mechanism, limit.title),
            *(number(limit.value), number(limit.limit)),
            *("yes" if limit.passes else "not shown", limit.kind),
        )
        for place, one in enumerate(advice.recommendations, 1)
        for choice in one.choices
        for limit in choice.limits or ()
    )
    intro = "What the policy limits, and what the audit of the first simulated release reached."
    missing = "No release was simulated, or the policy limits nothing that noise changes."
    return _part("limits", "The policy's limits", intro, missing, ("Limits", Table(_LIMITS, body)))


def _left_out(advice: Advice) -> list[Section]:
    def listed(numbers: dict[str, Estimate]) -> str:
        return "; ".join(f"{one.title}: {_shown(one)}" for one in numbers.values()) or "–"

    body = tuple(
        (str(d.columns), d.reason, listed(d.before), listed(d.after)) for d in advice.dropped
    )
    intro = "Columns that reveal labels or people, whatever the noise on the label."
    table, title = Table(_DROPPED, body), "Columns to leave out"
    return [_part("left-out", title, intro, "", (title, table))] if body else []
