"""What an audit of a training procedure found."""

from pathlib import Path
from typing import TYPE_CHECKING

from ldpaudit.result import Estimate, Frozen, Verdict
from ldpaudit.result.frames import frame_of
from ldpaudit.result.numbers import against, number, percent
from ldpaudit.work.documents import as_json
from ldpaudit.work.files import write_whole

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = "1.0"


def _written(text: str, path: Path | str | None) -> str:
    if path is not None:
        write_whole(Path(path), text, private=True)
    return text


class OfAModel(Frozen):
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
    def sentence(self) -> str:
        """The answer in one sentence or two."""
        raise NotImplementedError

    def epsilons(self, name: str) -> tuple[str, str]:
        """Return a lower bound and the claim for people, in their order; "" where none claims."""
        if self.claimed_epsilon is None:
            return number(self[name].value, "down"), ""
        return against(self[name].value, self.claimed_epsilon, "down")

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.verdict}: {self.sentence})"

    def to_html(self, path: Path | str | None = None) -> str:
        """Return the page: no script, no request to anywhere; as confidential as the labels.

        With a ``path`` it is written there too, readable by its owner only.
        """
        from ldpaudit.models_as_releases.page import page_of

        return _written(page_of(self), path)

    def _repr_html_(self) -> str:
        from ldpaudit.models_as_releases.page import embedded

        return embedded(self)

    def to_json(self, path: Path | str | None = None) -> str:
        """Return the result as JSON; with a ``path`` it is written there too, as by `to_html`."""
        return _written(as_json({**self.model_dump(), "sentence": self.sentence}), path)

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
        smallest ε that the guesses would have refuted the claim by.
    rule : str
        How coins were guessed, in words.
    """

    claimed_delta: float
    candidates: int
    runs: int
    rule: str
    one_person: bool = False

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        bound = self["model.epsilon"]
        assert bound.level is not None
        value, claimed = self.epsilons("model.epsilon")
        least, at = f"at least ε = {value}", f"at {percent(bound.level)} confidence"
        right = f"{number(100 * self['model.guesses'].value)} % of the guesses were right"
        if self.claimed_epsilon is None:
            return f"Nothing was claimed; the model reveals {least} about a training label ({at})."
        claim = f"ε = {claimed}"
        claim += f" and δ = {self.claimed_delta:g}" if self.claimed_delta else ""
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
        ``predictions.canary_guesses``, how many of their labels were guessed.
    """

    canaries: int

    @property
    def sentence(self) -> str:
        """The answer: what is guessed with the model and without, and ε if labels were drawn."""
        gain, accuracy = self["predictions.gain"], self["predictions.accuracy"]
        alone = self["predictions.features_accuracy"]
        assert gain.low is not None
        assert gain.high is not None
        ends = f"{100 * gain.low:.1f} to {100 * gain.high:.1f}"
        said = (
            f"With the model's probabilities {100 * accuracy.value:.1f} % of its training "
            f"labels are guessed, from the features alone {100 * alone.value:.1f} %: "
            f"a difference of {100 * gain.value:.1f} points ({percent(gain.level or 0.0)}: {ends}, "
            "by estimate). "
        )
        if not self.canaries:
            return f"{said}ε of the training was not measured: that needs labels drawn for it."
        bound = self["predictions.epsilon_lower"]
        value, claimed = self.epsilons("predictions.epsilon_lower")
        least, at = f"at least ε = {value}", f"at {percent(bound.level or 0.0)} confidence"
        if self.claimed_epsilon is None:
            return f"{said}Nothing was claimed; labels drawn for it certify {least} ({at})."
        begin = {"fail": "Violation found", "pass": "No violation found"}
        claim = f"ε = {claimed}"
        return (
            f"{begin.get(self.verdict, 'Inconclusive')}: training claims {claim}, and labels drawn "
            f"for it certify {least} ({at}). {said.rstrip()}"
        )
