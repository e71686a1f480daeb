"""The page of an audited training procedure."""

from ldpaudit.models_as_releases.result import ModelAudit
from ldpaudit.reports.charts.figure import Table
from ldpaudit.reports.charts.rows import Bar, bars_figure
from ldpaudit.reports.pages.page import GLOSSARY, Banner, Page, Section, Tile, render_page
from ldpaudit.result.numbers import fold, number, percent

_WORDS = {"fail": "Violation", "pass": "No violation found", "inconclusive": "Inconclusive"}


def model_page(found: ModelAudit) -> str:
    """Return the page as HTML, the same for the same result."""
    page = Page(
        what="Audit of a trained model",
        title="What training reveals about labels",
        access="As confidential as the true labels: for people who may see them.",
        banners=(Banner(found.verdict, _WORDS[found.verdict], (("", found.sentence),)),),
        tiles=_tiles(found),
        sections=(_epsilons(found), _guesses(found), _reading(found), GLOSSARY),
    )
    return render_page(page)


def _tiles(found: ModelAudit) -> tuple[Tile, ...]:
    bound, right = found["model.epsilon"], found["model.guesses"]
    tiles = [
        Tile(
            "ε of training (nats)",
            f"≥ {number(bound.value, 'down')}",
            f"certified, {percent(bound.level or 0.0)}, lower bound",
            "lower",
        ),
        Tile("Guesses that were right", f"{number(100 * right.value)} %", "features alone: 50 %"),
        Tile("Coins", f"{found.candidates:,}", f"on the labels of {found.rows:,} rows"),
    ]
    if found.claimed_epsilon is not None:
        tiles.insert(1, Tile("Claimed ε (nats)", number(found.claimed_epsilon)))
    return tuple(tiles)


def _epsilons(found: ModelAudit) -> Section:
    bound = found["model.epsilon"].value
    rows = [Bar("certified at least", f"≥ {number(bound, 'down')}", bound, True)]
    if found.claimed_epsilon is not None:
        rows.append(Bar("claimed", number(found.claimed_epsilon), found.claimed_epsilon))
    table = Table(("ε", "nats"), tuple((row.label, row.text) for row in rows))
    names = ("epsilon", "ε of training", "The certified lower bound of ε beside the claim.")
    odds = (
        f"What the model reveals can shift the odds between two labels of a person at least "
        f"{fold(bound, 'down')}."
    )
    return Section("epsilon", "ε", (odds,), (bars_figure(names, "nats", rows, table),))


def _guesses(found: ModelAudit) -> Section:
    right = found["model.guesses"]
    assert right.low is not None
    assert right.high is not None
    said = (
        f"{right.count or 0:,} of {right.n or 0:,} guesses were right: "
        f"{number(100 * right.value)} % ({percent(right.level or 0.0)}: {number(100 * right.low)} "
        f"to {number(100 * right.high)} %). Features reveal nothing about a coin, so whatever is "
        "above 50 % comes from the labels that the model was trained on.",
        f"Guessed was {found.rule}. The rule was chosen on a quarter of the coins and tested on "
        "the others.",
    )
    return Section("guesses", "Guesses", said)


def _reading(found: ModelAudit) -> Section:
    times = "once" if found.runs == 1 else f"{found.runs} times"
    who = "for each person of a random part of the table"
    if found.one_person:
        who = "in each run for one person, while all other labels were true,"
    said = (
        f"A coin decided {who} whether training got the true label or another. A lower bound of ε "
        "never says that a model is safe: another way to read the model may reveal more.",
        f"Training ran {times}; the coins were drawn with seed {found.seed}.",
        found["model.epsilon"].reference or "",
    )
    return Section("reading", "How to read this", said)
