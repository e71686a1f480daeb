"""What an audit of a training procedure found."""

import html
from typing import TYPE_CHECKING

from ldpaudit.result import Estimate, Frozen, Verdict
from ldpaudit.result.frames import frame_of
from ldpaudit.result.numbers import number, percent
from ldpaudit.work.documents import as_json

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = "1.0"


class ModelAudit(Frozen):
    """What a trained model reveals about the labels that it was trained on.

    Attributes
    ----------
    schema_version : str
    verdict : {"pass", "inconclusive", "fail"}
        Fail: the certified bound of ε is above the claim. Pass: it is not, and it is near enough to
        the claim that an excess of the size allowed would have shown. Inconclusive: neither, or
        nothing was claimed.
    claimed_epsilon : float or None
        Nats.
    claimed_delta : float
    max_undetected_excess : float
        Nats that may go unnoticed; a weaker audit is inconclusive.
    rows, candidates, runs, seed : int
        Rows of the table; people or groups of rows with a coin, in all runs together; how often the
        procedure ran; the seed of the coins.
    one_person : bool
        Whether one person alone had a coin, anew in each run: ``candidates`` are then the runs.
    estimates : tuple of Estimate
        ``model.epsilon`` is the certified lower bound, ``model.guesses`` the share of guesses that
        were right, ``model.guessed`` the share of coins that were guessed, ``model.detectable`` the
        smallest ε that the guesses would have refuted the claim by.
    rule : str
        How coins were guessed, in words.
    """

    schema_version: str
    verdict: Verdict
    claimed_epsilon: float | None
    claimed_delta: float
    max_undetected_excess: float
    rows: int
    candidates: int
    runs: int
    seed: int
    estimates: tuple[Estimate, ...]
    rule: str
    one_person: bool = False

    def __getitem__(self, name: str) -> Estimate:
        """Return an estimate by its id (KeyError)."""
        for estimate in self.estimates:
            if estimate.id == name:
                return estimate
        raise KeyError(name)

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        bound = self["model.epsilon"]
        assert bound.level is not None
        least = f"at least ε = {number(bound.value, 'down')}"
        at = f"at {percent(bound.level)} confidence"
        right = f"{number(100 * self['model.guesses'].value)} % of the guesses were right"
        if self.claimed_epsilon is None:
            return f"Nothing was claimed; the model reveals {least} about a training label ({at})."
        claim = f"ε = {self.claimed_epsilon:g}"
        claim += f" and δ = {self.claimed_delta:g}" if self.claimed_delta else ""
        if self.verdict == "fail":
            return (
                f"Violation found: training claims {claim}, but {least} is certified ({at}): "
                f"{right}, where features alone leave 50 %."
            )
        if self.verdict == "pass":
            return (
                f"No violation found: {least} of the claimed {claim} is certified ({at}), and more "
                f"would have shown: {right}."
            )
        return (
            f"Inconclusive: only {least} of the claimed {claim} is certified ({at}). The model's "
            "probabilities show too little about single labels to tell whether training keeps the "
            "claim."
        )

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        return f"ModelAudit({self.verdict}: {self.sentence})"

    def to_html(self) -> str:
        """Return the page: no script, no request to anywhere; as confidential as the labels."""
        from ldpaudit.models_as_releases.page import model_page

        return model_page(self)

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own."""
        content = html.escape(self.to_html(), quote=True)
        return f'<iframe srcdoc="{content}" width="100%" height="600"></iframe>'

    def to_json(self) -> str:
        """Return the result as JSON."""
        return as_json({**self.model_dump(), "sentence": self.sentence})

    def to_frame(self) -> "pd.DataFrame":
        """Return the estimates as a data frame, one row each, by id."""
        return frame_of(self.estimates, Estimate)
