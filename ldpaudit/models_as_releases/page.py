"""The page of an audited training procedure."""

from typing import Final

from ldpaudit.models_as_releases.result import ModelAudit, OfAModel, PredictionsAudit
from ldpaudit.reports.charts.figure import Table
from ldpaudit.reports.charts.rows import Bar, bars_figure
from ldpaudit.reports.html import fragment
from ldpaudit.reports.pages.page import GLOSSARY, Banner, Page, Section, Tile, render_page
from ldpaudit.result.numbers import fold, number, percent

_ACCESS: Final = "As confidential as the true labels: for people who may see them."
_WORDS = {"fail": "Violation", "pass": "No violation found", "inconclusive": "Inconclusive"}


def page_of(found: OfAModel) -> str:
    """Return the page as HTML, the same for the same result."""
    sections: tuple[Section, ...]
    if isinstance(found, ModelAudit):
        what, title = "Audit of a trained model", "What training reveals about labels"
        sections = (_epsilons(found), _guesses(found), _reading(found))
    else:
        assert isinstance(found, PredictionsAudit)
        what, title = "Audit of predictions", "What predictions reveal about training labels"
        sections = _prediction_sections(found)
    page = Page(
        what=what,
        title=title,
        access=_ACCESS,
        banners=(Banner(found.verdict, _WORDS[found.verdict], (("", found.sentence),)),),
        tiles=_tiles(found),
        sections=(*sections, GLOSSARY),
    )
    return render_page(page)


def embedded(found: OfAModel) -> str:
    """Return a result as a short fragment for a notebook."""
    return fragment(found.sentence, (), _tiles(found), _ACCESS)


def _tiles(found: OfAModel) -> tuple[Tile, ...]:
    if isinstance(found, PredictionsAudit):
        return _prediction_tiles(found)
    assert isinstance(found, ModelAudit)
    bound, right = found["model.epsilon"], found["model.guesses"]
    value, claimed = found.epsilons("model.epsilon")
    tiles = [
        Tile(
            "ε of training (nats)",
            f"≥ {value}",
            f"certified, {percent(bound.level or 0.0)}, lower bound",
            "lower",
        ),
        Tile("Guesses that were right", f"{number(100 * right.value)} %", "features alone: 50 %"),
        Tile("Coins", f"{found.candidates:,}", f"on the labels of {found.rows:,} rows"),
    ]
    if claimed:
        tiles.insert(1, Tile("Claimed ε (nats)", claimed))
    return tuple(tiles)


def _epsilons(found: ModelAudit) -> Section:
    bound = found["model.epsilon"].value
    value, claimed = found.epsilons("model.epsilon")
    rows = [Bar("certified at least", f"≥ {value}", bound, True)]
    if found.claimed_epsilon is not None:
        rows.append(Bar("claimed", claimed, found.claimed_epsilon))
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


_SCORES: Final = {
    "predictions.accuracy": "with the model's probabilities",
    "predictions.features_accuracy": "from the features alone",
    "predictions.commonest": "the commonest label",
}


def _prediction_tiles(found: PredictionsAudit) -> tuple[Tile, ...]:
    gain, accuracy = found["predictions.gain"], found["predictions.accuracy"]
    tiles = [
        Tile("Training labels guessed", f"{100 * accuracy.value:.1f} %", "estimated"),
        Tile("Beyond the features", f"{100 * gain.value:.1f} points", "estimated"),
    ]
    claimed = "" if found.claimed_epsilon is None else number(found.claimed_epsilon)
    if found.canaries:
        bound = found["predictions.epsilon_lower"]
        value, claimed = found.epsilons(bound.id)
        level = f"certified, {percent(bound.level or 0.0)}, lower bound"
        tiles.append(Tile("ε of the training (nats)", f"≥ {value}", level, "lower"))
    if claimed:
        tiles.insert(2, Tile("Claimed ε (nats)", claimed))
    return tuple(tiles)


def _prediction_sections(found: PredictionsAudit) -> tuple[Section, ...]:
    rows = [
        Bar(words, f"{100 * found[name].value:.1f} %", found[name].value)
        for name, words in _SCORES.items()
    ]
    table = Table(("guessed", "share"), tuple((row.label, row.text) for row in rows))
    names = ("guessed", "Training labels guessed", "Shares of training labels that are guessed.")
    gain = found["predictions.gain"]
    said = (
        f"The strongest attack with the probabilities: {found['predictions.accuracy'].method}. "
        f"Without them: {found['predictions.features_accuracy'].method}.",
        f"What the probabilities add: {100 * gain.value:.1f} points "
        f"({percent(gain.level or 0.0)}: {100 * (gain.low or 0.0):.1f} to "
        f"{100 * (gain.high or 0.0):.1f}, estimated). The model may have stored labels, or "
        "know better than the attacker without it how labels depend on features; the difference "
        "does not tell which, and is no bound of ε.",
    )
    guessed = Section(
        "guessed", "Labels guessed", said, (bars_figure(names, "share", rows, table),)
    )
    if not found.canaries:
        unknown = (
            "ε of the training was not measured. It shows only in labels that a coin decided: draw "
            "the labels of some rows with probabilities of your own before the training, and give "
            "these probabilities (--canaries)."
        )
        return guessed, Section("epsilon", "ε", (unknown,))
    bound, right = found["predictions.epsilon_lower"], found["predictions.canary_guesses"]
    text = (
        f"Of {found.canaries:,} labels that were drawn for the training {right.n or 0:,} were "
        f"guessed, {100 * right.value:.1f} % of them rightly ({right.method}). That certifies "
        f"ε ≥ {found.epsilons(bound.id)[0]} ({percent(bound.level or 0.0)}). A lower bound never "
        "says that a model is safe: another way to read it may reveal more.",
        bound.reference or "",
    )
    return guessed, Section("epsilon", "ε", text)
