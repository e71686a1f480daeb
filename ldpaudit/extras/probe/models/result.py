"""What an audit of a training procedure found."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ldpaudit.doors import Estimate, Frozen, number, percent
from ldpaudit.extras.probe.bars import Bar, bars_figure
from ldpaudit.reports.charts.figure import Table
from ldpaudit.reports.html import fragment
from ldpaudit.reports.pages.page import GLOSSARY, Banner, Page, Section, Tile, render_page
from ldpaudit.reports.plots import by_name
from ldpaudit.result import Verdict
from ldpaudit.result.frames import frame_of
from ldpaudit.result.numbers import against, fold
from ldpaudit.result.shown import Shown
from ldpaudit.work.documents import as_json

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = "1.0"
_ACCESS: Final = "As confidential as the true labels: for people who may see them."
CURVE_EPSILON: Final = "predictions.curve_epsilon_lower"
CURVE_REFERENCE: Final = (
    "Mahloujifar, Melis & Chaudhuri (2025), Algorithm 1; Dong, Roth & Su (2022), Corollary 2.13"
)
_WORDS = {"fail": "Violation", "pass": "No violation found", "inconclusive": "Inconclusive"}
_SCORES: Final = {
    "predictions.accuracy": "with the model's probabilities",
    "predictions.features_accuracy": "from the features alone",
    "predictions.commonest": "the commonest label",
}


def _ends(share: Estimate, digits: int) -> str:
    """Return the level of an interval and its ends in percent, rounded outwards."""
    low, high = share.low, share.high
    assert low is not None
    assert high is not None
    ends = number(100 * low, "down", digits), number(100 * high, "up", digits)
    return f"{percent(share.level or 0.0)}: {' to '.join(ends)}"


class OfAModel(Shown, Frozen):
    """What an audit of a model found: a verdict, a sentence and numbers.

    Attributes
    ----------
    schema_version : str
    verdict : {"pass", "inconclusive", "fail"}
        Fail: the certified bound of ε is above the claim. Pass: it is not, and it comes within
        ``max_undetected_excess`` of the claim. Inconclusive: neither, or nothing was claimed.
    claimed_epsilon : float or None
        Nats.
    max_undetected_excess : float
        Nats that may go unnoticed; a weaker audit is inconclusive.
    rows, seed : int
    estimates : tuple of Estimate
    """

    what: ClassVar[str]
    title: ClassVar[str]
    schema_version: str
    verdict: Verdict
    claimed_epsilon: float | None
    max_undetected_excess: float
    rows: int
    seed: int
    estimates: tuple[Estimate, ...]

    def __getitem__(self, name: str) -> Estimate:
        """Return an estimate by its id (KeyError)."""
        for estimate in self.estimates:
            if estimate.id == name:
                return estimate
        raise KeyError(name)

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The answer in one sentence or two."""

    @property
    @abstractmethod
    def _tiles(self) -> tuple[Tile, ...]: ...

    @property
    @abstractmethod
    def _sections(self) -> tuple[Section, ...]: ...

    def epsilons(self, name: str) -> tuple[str, str]:
        """Return a lower bound and the claim for people, in their order; "" where none claims."""
        if self.claimed_epsilon is None:
            return number(self[name].value, "down"), ""
        return against(self[name].value, self.claimed_epsilon, "down")

    @property
    def _sentence(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.verdict}: {self})"

    def _html(self) -> str:
        page = Page(
            what=self.what,
            title=self.title,
            access=_ACCESS,
            banners=(Banner(self.verdict, _WORDS[self.verdict], (("", self.sentence),)),),
            tiles=self._tiles,
            sections=(*self._sections, GLOSSARY),
        )
        return render_page(page)

    def _figures(self) -> dict[str, Any]:
        return by_name(self._sections)

    def _repr_html_(self) -> str:
        return fragment(str(self), (), self._tiles, _ACCESS)

    def _json(self) -> str:
        return as_json({**self.model_dump(), "sentence": self.sentence})

    def to_frame(self) -> "pd.DataFrame":
        """Return the estimates as a data frame, one row each, by id."""
        return frame_of(self.estimates, Estimate)


class ModelAudit(OfAModel):
    """What a trained model reveals about the labels that it was trained on.

    Attributes
    ----------
    claimed_delta : float
    candidates, runs : int
        People or groups of rows with a coin, in all runs together; how often the procedure ran.
    one_person : bool
        Whether one person alone had a coin, anew in each run: ``candidates`` are then the runs.
    estimates : tuple of Estimate
        ``model.epsilon`` is the certified lower bound, ``model.guesses`` the share of guesses that
        were right, ``model.guessed`` the share of coins that were guessed, ``model.detectable`` the
        smallest ε that the guesses would have refuted the claim by. With a claimed ``curve``
        ``model.curve_epsilon`` is the bound of ε at δ under it, which is judged.
    rule : str
        How coins were guessed, in words.
    curve : {"gaussian"} or None
        The curve that was claimed.
    stop_early : bool
        Whether the audit could end after any run.
    """

    what = "Audit of a trained model"
    title = "What training reveals about labels"
    claimed_delta: float
    candidates: int
    runs: int
    rule: str
    one_person: bool = False
    curve: str | None = None
    stop_early: bool = False

    @property
    def _judged(self) -> str:
        return "model.epsilon" if self.curve is None else "model.curve_epsilon"

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        bound = self[self._judged]
        assert bound.level is not None
        value, claimed = self.epsilons(self._judged)
        least, at = f"at least ε = {value}", f"at {percent(bound.level)} confidence"
        right = f"{number(100 * self['model.guesses'].value)} % of the guesses were right"
        if self.claimed_epsilon is None:
            return f"Nothing was claimed; the model reveals {least} about a training label ({at})."
        claim = f"ε = {claimed}"
        claim += f" and δ = {self.claimed_delta:g}" if self.claimed_delta else ""
        claim += " by Gaussian noise" if self.curve else ""
        if self.verdict == "fail":
            return (
                f"Violation found: training claims {claim}, but {least} is certified ({at}): "
                f"{right}, where features alone leave 50 %."
            )
        if self.verdict == "pass":
            return (
                f"No violation found: {least} of the claimed {claim} is certified ({at}), so the "
                f"probabilities do show what the model has stored: {right}."
            )
        return (
            f"Inconclusive: only {least} of the claimed {claim} is certified ({at}). The model's "
            "probabilities show too little about single labels to tell whether training keeps the "
            "claim."
        )

    @property
    def _sections(self) -> tuple[Section, ...]:
        return self._epsilons, self._guesses, self._reading

    @property
    def _tiles(self) -> tuple[Tile, ...]:
        bound, right = self[self._judged], self["model.guesses"]
        value, claimed = self.epsilons(self._judged)
        tiles = [
            Tile(
                "ε of training (nats)",
                f"≥ {value}",
                f"certified, {percent(bound.level or 0.0)}, lower bound",
                "lower",
            ),
            Tile(
                "Guesses that were right", f"{number(100 * right.value)} %", "features alone: 50 %"
            ),
            Tile("Coins", f"{self.candidates:,}", f"on the labels of {self.rows:,} rows"),
        ]
        if claimed:
            tiles.insert(1, Tile("Claimed ε (nats)", claimed))
        return tuple(tiles)

    @property
    def _epsilons(self) -> Section:
        bound = self[self._judged].value
        value, claimed = self.epsilons(self._judged)
        rows = [Bar("certified at least", f"≥ {value}", bound, True)]
        if self.curve is not None:
            single = self["model.epsilon"].value
            text = f"≥ {number(single, 'down')}"
            rows.append(Bar("certified without the curve", text, single, True))
        if self.claimed_epsilon is not None:
            rows.append(Bar("claimed", claimed, self.claimed_epsilon))
        table = Table(("ε", "nats"), tuple((row.label, row.text) for row in rows))
        names = ("epsilon", "ε of training", "The certified lower bound of ε beside the claim.")
        odds = (
            f"What the model reveals can shift the odds between two labels of a person at least "
            f"{fold(bound, 'down')}."
        )
        return Section("epsilon", "ε", (odds,), (bars_figure(names, "nats", rows, table),))

    @property
    def _guesses(self) -> Section:
        right = self["model.guesses"]
        said = (
            f"{right.count or 0:,} of {right.n or 0:,} guesses were right: "
            f"{number(100 * right.value)} % ({_ends(right, 3)} %). Features reveal nothing "
            "about a coin, so whatever is above 50 % comes from the labels that the model was "
            "trained on.",
            f"Guessed was {self.rule}. {self._choice}",
        )
        return Section("guesses", "Guesses", said)

    @property
    def _choice(self) -> str:
        if self.one_person:
            return "The first quarter of the runs showed how to guess; the others test it."
        if self.stop_early:
            return "The claim was tested after every run, by a test that allows for that."
        return (
            "The method was chosen without the coins; seven shares of coins to guess share the "
            "error probability."
        )

    @property
    def _reading(self) -> Section:
        times = "once" if self.runs == 1 else f"{self.runs} times"
        who = "for each person of a random part of the table"
        if self.one_person:
            who = "in each run for one person, while all other labels were true,"
        said = (
            f"A coin decided {who} whether training got the true label or another. A lower bound "
            "of ε never says that a model is safe: another way to read the model may reveal more.",
            f"Training ran {times}; the coins were drawn with seed {self.seed}.",
            self[self._judged].reference or "",
        )
        return Section("reading", "How to read this", said)


class PredictionsAudit(OfAModel):
    """What a model's probabilities for its own training rows reveal about their labels.

    Attributes
    ----------
    canaries : int
        Rows whose labels the auditor drew before the training.
    estimates : tuple of Estimate
        ``predictions.accuracy``: labels guessed by the strongest attack with the probabilities,
        ``predictions.features_accuracy``: from the features alone, ``predictions.gain``: the
        difference, ``predictions.commonest``: the share of the commonest label; with canaries
        ``predictions.epsilon_lower``, a certified bound of ε of the training, and
        ``predictions.canary_guesses``, how many of their labels were guessed; where the curve of
        Gaussian noise is claimed, ``predictions.curve_epsilon_lower``, the bound under it, which is
        judged.
    gaussian_delta : float or None
        δ at which ε is claimed, and bounded, under the curve of Gaussian noise.
    """

    what = "Audit of predictions"
    title = "What predictions reveal about training labels"
    canaries: int
    gaussian_delta: float | None = None

    @property
    def _judged(self) -> str:
        return "predictions.epsilon_lower" if self.gaussian_delta is None else CURVE_EPSILON

    @property
    def sentence(self) -> str:
        """The answer: what is guessed with the model and without, and ε if labels were drawn."""
        gain, accuracy = self["predictions.gain"], self["predictions.accuracy"]
        alone = self["predictions.features_accuracy"]
        said = (
            f"With the model's probabilities {100 * accuracy.value:.1f} % of its training "
            f"labels are guessed, from the features alone {100 * alone.value:.1f} %: "
            f"a difference of {100 * gain.value:.1f} points ({_ends(gain, 1)}, by estimate). "
        )
        if not self.canaries:
            return f"{said}ε of the training was not measured: that needs labels drawn for it."
        bound = self[self._judged]
        value, claimed = self.epsilons(self._judged)
        least, at = f"at least ε = {value}", f"at {percent(bound.level or 0.0)} confidence"
        if self.claimed_epsilon is None:
            return f"{said}Nothing was claimed; labels drawn for it certify {least} ({at})."
        begin = {"fail": "Violation found", "pass": "No violation found"}
        claim = f"ε = {claimed}"
        if self.gaussian_delta is not None:
            claim += f" at δ = {self.gaussian_delta:g} by Gaussian noise"
        return (
            f"{begin.get(self.verdict, 'Inconclusive')}: training claims {claim}, and labels drawn "
            f"for it certify {least} ({at}). {said.rstrip()}"
        )

    @property
    def _tiles(self) -> tuple[Tile, ...]:
        gain, accuracy = self["predictions.gain"], self["predictions.accuracy"]
        tiles = [
            Tile("Training labels guessed", f"{100 * accuracy.value:.1f} %", "estimated"),
            Tile("Beyond the features", f"{100 * gain.value:.1f} points", "estimated"),
        ]
        claimed = "" if self.claimed_epsilon is None else number(self.claimed_epsilon)
        if self.canaries:
            bound = self[self._judged]
            value, claimed = self.epsilons(bound.id)
            level = f"certified, {percent(bound.level or 0.0)}, lower bound"
            tiles.append(Tile("ε of the training (nats)", f"≥ {value}", level, "lower"))
        if claimed:
            tiles.insert(2, Tile("Claimed ε (nats)", claimed))
        return tuple(tiles)

    @property
    def _sections(self) -> tuple[Section, ...]:
        rows = [
            Bar(words, f"{100 * self[name].value:.1f} %", self[name].value)
            for name, words in _SCORES.items()
        ]
        table = Table(("guessed", "share"), tuple((row.label, row.text) for row in rows))
        names = (
            "guessed",
            "Training labels guessed",
            "Shares of training labels that are guessed.",
        )
        gain = self["predictions.gain"]
        said = (
            f"The strongest attack with the probabilities: {self['predictions.accuracy'].method}. "
            f"Without them: {self['predictions.features_accuracy'].method}.",
            f"What the probabilities add: {100 * gain.value:.1f} points "
            f"({_ends(gain, 1)}, estimated). The model may have stored labels, or "
            "know better than the attacker without it how labels depend on features; the "
            "difference does not tell which, and is no bound of ε.",
        )
        guessed = Section(
            "guessed", "Labels guessed", said, (bars_figure(names, "share", rows, table),)
        )
        if not self.canaries:
            unknown = (
                "ε of the training was not measured. It shows only in labels that a coin "
                "decided: draw the labels of some rows with probabilities of your own before the "
                "training, and give these probabilities (--canaries)."
            )
            return guessed, Section("epsilon", "ε", (unknown,))
        bound, right = self["predictions.epsilon_lower"], self["predictions.canary_guesses"]
        text: tuple[str, ...] = (
            f"Of {self.canaries:,} labels that were drawn for the training {right.n or 0:,} were "
            f"guessed, {100 * right.value:.1f} % of them rightly ({right.method}). That certifies "
            f"ε ≥ {self.epsilons(bound.id)[0]} ({percent(bound.level or 0.0)}). A lower bound "
            "never says that a model is safe: another way to read it may reveal more.",
            bound.reference or "",
        )
        if self.gaussian_delta is not None:
            under = self[CURVE_EPSILON]
            text = (
                *text,
                f"If training has the curve of Gaussian noise, ε ≥ {self.epsilons(under.id)[0]} at "
                f"δ = {self.gaussian_delta:g} ({percent(under.level or 0.0)}).",
                under.reference or "",
            )
        return guessed, Section("epsilon", "ε", text)
