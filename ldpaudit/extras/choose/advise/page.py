"""The result of ``advise``, on the terminal and on its page, with frontier and candidates."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

from ldpaudit.commands.shell import Confidential
from ldpaudit.doors import Estimate, Said, number, percent
from ldpaudit.extras.choose.advise.result import (
    AdviceRun,
    Candidate,
    Dropped,
    Outcome,
    Recommendation,
)
from ldpaudit.extras.choose.planes import MOST_LINES, Path, Spot, frontier_figure
from ldpaudit.extras.choose.sheet import Paged, render_sheet
from ldpaudit.reports.charts.figure import Table
from ldpaudit.reports.pages.page import Section, Tile
from ldpaudit.reports.plots import by_name
from ldpaudit.result.numbers import rows

if TYPE_CHECKING:
    import pandas as pd

ORDER: Final = (
    "In this order: releases that passed two simulated audits; of these what no interval shows to "
    "be worth less than the best, and of these what "
    "the closed form expects to err least."
)
_NOT_RELEASED: Final = (
    "Nothing was released. Simulated releases were drawn with a seeded generator and are not kept."
)
_NO_PROOF: Final = (
    "No violation found is not a proof of privacy: a stronger attack may exist. Audit the release "
    "itself before it is published: ldpaudit run."
)
_BEST: Final = (
    f"The best releases that meet the policy, utility and leakage side by side. {ORDER} Certified: "
    "an interval that needs independent rows only; exact: no chance in it; estimated: with the "
    "assumptions that the JSON file names."
)
# What tables show, and why one is missing.
_OF_LIMITS: Final = (
    "What the policy limits, and what the audit of the first simulated release reached.",
    "No release was simulated, or the policy limits nothing that noise changes.",
)
_OF_CANDIDATES: Final = (
    "Every release that was looked at, and why it is not recommended.",
    "There is no candidate.",
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
_VERDICTS: Final[dict[Outcome, Literal["pass", "fail", "inconclusive"]]] = {
    "found": "pass",
    "none": "fail",
    "undecided": "inconclusive",
}
_USES: Final = {
    "classification": "accuracy of a model that learns from the release",
    "regression": "squared error of a model that learns from the release",
    "counts": "typical error of a label's share",
}


class Advice(Confidential, Paged):
    """A recommended release that meets a policy.

    Attributes
    ----------
    ldpaudit_version
        The version that wrote it.
    outcome
        Whether something passes, nothing in reach does, or that is not known.
    sentence
        The advice in one sentence.
    recommendations
        Three at most, the best first; where none was simulated, those to try first.
    candidates
        What was looked at.
    dropped
        Feature columns to leave out.
    notes
        Remarks.
    run
        How it came about.
    """

    ldpaudit_version: str
    outcome: Outcome
    sentence: str
    recommendations: list[Recommendation]
    candidates: list[Candidate]
    dropped: list[Dropped]
    notes: list[str]
    run: AdviceRun

    def __repr__(self) -> str:
        return f"Advice({str(self)!r})"

    @property
    def _sentence(self) -> str:
        return self.sentence

    def _figures(self) -> dict[str, Any]:
        return by_name([_frontier(self)])

    @property
    def verdict(self) -> Literal["pass", "fail", "inconclusive"]:
        """The outcome as the verdict whose exit status it has."""
        return _VERDICTS[self.outcome]

    def said(self, *, quiet: bool) -> Iterator[Said]:
        """Yield what to release, and the command to make it."""
        yield from (self.sentence,) if quiet else (self.access, self.sentence)
        if quiet:
            yield from (one.command for one in self.recommendations[:1])
            return
        yield from (("left out", f"{', '.join(d.names)}: {d.reason}") for d in self.dropped)
        if self.recommendations:
            found = self.outcome == "found"
            title = (
                "Releases that meet the policy" if found else "What to try first, by closed form"
            )
            yield title, *_recommended(self)
            if found and len(self.recommendations) > 1:
                yield ORDER
            for place, one in enumerate(self.recommendations, 1):
                yield f"  {place}. {one.command}"
        yield from (("note", text) for text in self.notes)
        yield f"All intervals hold together at {percent(self.run.level)}. {_NOT_RELEASED}"

    def page(self) -> str:
        """Return the page."""
        run, found = self.run, self.recommendations
        tiles = [
            *(Tile("ε of the first choice (nats)", number(one.epsilon)) for one in found[:1]),
            Tile("rows of the table", rows(run.rows)),
            Tile("rows reported on", rows(run.reported), "nothing was learnt from them"),
            Tile("simulated releases", str(run.simulated)),
        ]
        commands = tuple((str(i), one.command) for i, one in enumerate(found, 1))
        made = ("The command to make each", Table(("", "Command"), commands))
        table = ("Recommended", Table(*_recommended(self)))
        limits = tuple(
            (
                *(str(place), choice.mechanism, limit.title),
                *(number(limit.value), number(limit.limit)),
                *("yes" if limit.passes else "not shown", limit.kind),
            )
            for place, one in enumerate(found, 1)
            for choice in one.choices
            for limit in choice.limits or ()
        )
        every = ("Candidates", _candidates(self))
        return render_sheet(
            what="Advice before releasing",
            title=f"For {run.use}, {rows(run.rows)} rows",
            lead=self.sentence,
            tiles=tuple(tiles),
            sections=(
                _part("recommended", "What to release", _BEST, self.sentence, table, made),
                _frontier(self),
                *_left_out(self),
            ),
            more=(
                _part(
                    "limits", "The policy's limits", *_OF_LIMITS, ("Limits", Table(_LIMITS, limits))
                ),
                _part("candidates", "Every candidate", *_OF_CANDIDATES, every),
            ),
            notes=(
                _NOT_RELEASED,
                _NO_PROOF,
                f"All intervals hold together at {percent(run.level)}, whichever release is "
                "chosen, given that rows are independent.",
                *self.notes,
            ),
            access=self.access,
        )

    def to_frame(self) -> "pd.DataFrame":
        """Return one row for each private column of each recommendation."""
        import pandas as pd

        rows = [
            {
                "place": place,
                "mechanism": choice.mechanism,
                "epsilon": choice.epsilon,
                **{name: one.value for name, one in choice.numbers.items()},
                "kind": choice.kind,
                "command": recommendation.command,
            }
            for place, recommendation in enumerate(self.recommendations, 1)
            for choice in recommendation.choices
        ]
        return pd.DataFrame(rows)


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
            choice.sure,
        )
        for place, choice in choices
    )


def _shown(estimate: Estimate) -> str:
    """Return a number with its interval."""
    if estimate.low is None or estimate.high is None:
        return number(estimate.value)
    low, high = number(estimate.low, "down"), number(estimate.high, "up")
    return f"{number(estimate.value)} [{low}, {high}]"


def _part(key: str, title: str, intro: str, missing: str, *tables: tuple[str, Table]) -> Section:
    """Return a part of tables, or that it is missing where the first has no row."""
    if not tables[0][1].rows:
        return Section(key, title, (intro,), missing=missing)
    return Section(key, title, (intro,), tables=tables)


def _frontier(advice: Advice) -> Section:
    use, title = advice.run.use, "Leakage against utility"
    intro = (
        "Each mark is one mechanism at one ε that was simulated. Further left, attackers learn "
        f"less; further {'up' if use == 'classification' else 'down'}, the release is worth more. "
        "Filled: it met the policy; orange: it broke a limit."
    )
    able = [one for one in advice.candidates if None not in (one.utility, one.accuracy)]
    able.sort(key=lambda one: -one.epsilon)
    names = list(dict.fromkeys(one.mechanism for one in able))[:MOST_LINES]
    spots = {name: list[Spot]() for name in names}
    for one in able:
        x, y, look = one.accuracy or 0.0, one.utility or 0.0, "pass" if one.passes else "fail"
        if one.mechanism in spots:
            spot = Spot(x, y, (x, x), (y, y), f"ε = {one.epsilon:.4g}", look)  # type: ignore[arg-type]
            spots[one.mechanism].append(spot)
    paths = [Path(name, tuple(some)) for name, some in spots.items()]
    axes = ("labels guessed right", _USES[use])
    figure = frontier_figure(title, paths, axes, (None, None), _candidates(advice))
    if figure is None:
        missing = "Not drawn: no release was simulated."
        return Section("frontier", title, (intro,), missing=missing)
    return Section("frontier", title, (intro,), (figure,))


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


def _left_out(advice: Advice) -> list[Section]:
    def listed(numbers: dict[str, Estimate]) -> str:
        return "; ".join(f"{one.title}: {_shown(one)}" for one in numbers.values()) or "–"

    body = tuple(
        (str(d.columns), d.reason, listed(d.before), listed(d.after)) for d in advice.dropped
    )
    intro = "Columns that reveal labels or people, whatever the noise on the label."
    table, title = Table(_DROPPED, body), "Columns to leave out"
    return [_part("left-out", title, intro, "", (title, table))] if body else []
