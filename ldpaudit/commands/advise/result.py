"""The result of ``advise``: what to release, what it costs, and the command to make it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from ldpaudit import __version__
from ldpaudit.commands.advise.closed_forms.candidates import Candidate
from ldpaudit.commands.advise.closed_forms.leakage import Held
from ldpaudit.commands.advise.request import AdviseRequest
from ldpaudit.commands.advise.simulation import Simulation
from ldpaudit.result import Estimate, Kind
from ldpaudit.result.access import CONFIDENTIAL

if TYPE_CHECKING:
    import pandas as pd

Outcome = Literal["found", "none", "undecided"]
"""Something passes; nothing in reach does; the time or the rows did not suffice to say."""
SURENESS: Final = ("estimated", "certified", "exact")
NOT_RELEASED: Final = (
    "Nothing was released. Simulated releases were drawn with a seeded generator and are not kept."
)


@dataclass(frozen=True, eq=False)
class Choice:
    """A mechanism for one private column.

    Attributes
    ----------
    candidate : Candidate
    held : tuple of Held
        The policy's limits, on the rows that candidates were compared on.
    utility : Estimate
    leakage : tuple of Estimate
        On rows that no choice has seen, the attacker's accuracy first.
    simulation : Simulation or None
        None: it was not simulated.
    """

    candidate: Candidate
    held: tuple[Held, ...]
    utility: Estimate
    leakage: tuple[Estimate, ...]
    simulation: Simulation | None

    @property
    def kind(self) -> Kind:
        """How sure the least sure of its utility and leakage is."""
        kinds = [self.utility.kind, *(estimate.kind for estimate in self.leakage)]
        return min(kinds, key=SURENESS.index)

    def stored(self) -> dict[str, Any]:
        """Return what the JSON file holds."""
        return {
            "mechanism": self.candidate.name,
            "parameter": "epsilon",
            "value": self.candidate.epsilon,
            "epsilon": self.candidate.epsilon,
            "utility": self.utility.model_dump(),
            "leakage": {one.id: one.model_dump() for one in self.leakage},
            "limits": [_held(held) for held in self.held],
            "simulated": self.simulation is not None,
            "kind": self.kind,
        }


def _held(held: Held) -> dict[str, Any]:
    return {
        "check": held.limit.check,
        "title": held.limit.title,
        "level": held.limit.level,
        "unit": held.limit.unit,
        "value": held.value,
        "limit": held.most,
        "kind": held.kind,
        "passes": held.passes,
    }


@dataclass(frozen=True, eq=False)
class Recommendation:
    """What to release: a mechanism for each private column, and the command that does it."""

    choices: tuple[Choice, ...]
    command: str

    @property
    def epsilon(self) -> float:
        """What the whole release costs a person, in nats: the sum over the columns."""
        return sum(choice.candidate.epsilon for choice in self.choices)

    @property
    def words(self) -> str:
        """Mechanisms and their ε."""
        return " + ".join(choice.candidate.words for choice in self.choices)

    def stored(self) -> dict[str, Any]:
        """Return what the JSON file holds; of several columns each under ``labels``, in order."""
        first = self.choices[0].stored()
        if len(self.choices) == 1:
            return first | {"command": self.command}
        kinds = [choice.kind for choice in self.choices]
        whole = dict.fromkeys(("value", "utility", "leakage", "limits"))
        return whole | {
            "mechanism": "independent",
            "parameter": "epsilon",
            "epsilon": self.epsilon,
            "kind": min(kinds, key=SURENESS.index),
            "simulated": all(choice.simulation is not None for choice in self.choices),
            "labels": [choice.stored() for choice in self.choices],
            "command": self.command,
        }


@dataclass(frozen=True)
class Dropped:
    """Feature columns that are better left out, and what that does.

    Attributes
    ----------
    columns : tuple of str
        Their names, for the terminal and the command; the JSON file counts them.
    reason : str
    before, after : tuple of Estimate
        What the features alone tell, with and without them, on rows that no choice has seen.
    """

    columns: tuple[str, ...]
    reason: str
    before: tuple[Estimate, ...] = ()
    after: tuple[Estimate, ...] = ()

    def stored(self) -> dict[str, Any]:
        """Return what the JSON file holds."""
        return {
            "columns": len(self.columns),
            "reason": self.reason,
            "before": {one.id: one.model_dump() for one in self.before},
            "after": {one.id: one.model_dump() for one in self.after},
        }


@dataclass(frozen=True, eq=False)
class Advice:
    """The result.

    Attributes
    ----------
    request : AdviseRequest
    outcome : {"found", "none", "undecided"}
    sentence : str
    recommendations : tuple of Recommendation
        Three at most, the best first.
    candidates : tuple of Candidate
        Everything that was looked at, for the frontier, of the first column.
    dropped : tuple of Dropped
    notes : tuple of str
    level : float
        The confidence of all intervals together.
    rows, reported, seed : int
        Rows of the table; rows that no choice has seen; the root seed.
    simulated : int
        Releases that were simulated.
    refuted : frozenset
        Mechanisms and ε that a simulation refuted, whatever the closed forms say.
    policy_sha256 : str or None
    """

    request: AdviseRequest
    outcome: Outcome
    sentence: str
    recommendations: tuple[Recommendation, ...]
    candidates: tuple[Candidate, ...]
    dropped: tuple[Dropped, ...]
    notes: tuple[str, ...]
    level: float
    rows: int
    reported: int
    seed: int
    simulated: int
    refuted: frozenset[tuple[str, float]]
    policy_sha256: str | None

    def __repr__(self) -> str:
        return f"Advice({self.sentence!r})"

    def passes(self, candidate: Candidate) -> bool:
        """Return whether the policy lets a candidate pass, as far as is known."""
        name, epsilon = candidate.name, candidate.epsilon
        if any(one == name and epsilon >= least for one, least in self.refuted):
            return False
        chosen = [choice.candidate for one in self.recommendations for choice in one.choices]
        return candidate.passes or any(
            one.name == name and epsilon <= one.epsilon for one in chosen
        )

    @property
    def verdict(self) -> Literal["pass", "fail", "inconclusive"]:
        """The outcome as the verdict whose exit status it has."""
        words: dict[Outcome, Literal["pass", "fail", "inconclusive"]] = {
            "found": "pass",
            "none": "fail",
            "undecided": "inconclusive",
        }
        return words[self.outcome]

    def to_frame(self) -> "pd.DataFrame":
        """Return one row for each private column of each recommendation."""
        import pandas as pd

        rows = [
            {
                "place": place,
                "mechanism": choice.candidate.name,
                "epsilon": choice.candidate.epsilon,
                choice.utility.id: choice.utility.value,
                **{one.id: one.value for one in choice.leakage},
                "kind": choice.kind,
                "command": recommendation.command,
            }
            for place, recommendation in enumerate(self.recommendations, 1)
            for choice in recommendation.choices
        ]
        return pd.DataFrame(rows)

    def stored(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return {
            "access": CONFIDENTIAL,
            "schema_version": "1.0",
            "ldpaudit_version": __version__,
            "outcome": self.outcome,
            "sentence": self.sentence,
            "recommendations": [one.stored() for one in self.recommendations],
            "candidates": [self._candidate(one) for one in self.candidates],
            "dropped": [one.stored() for one in self.dropped],
            "notes": list(self.notes),
            "run": {
                "seed": self.seed,
                "rows": self.rows,
                "reported": self.reported,
                "level": self.level,
                "simulated": self.simulated,
                "use": self.request.use,
                "policy_sha256": self.policy_sha256,
            },
        }

    def _candidate(self, one: Candidate) -> dict[str, Any]:
        return {
            "mechanism": one.name,
            "parameter": "epsilon",
            "value": one.epsilon,
            "epsilon": one.epsilon,
            "passes": self.passes(one),
            "utility": one.worth.value,
            "accuracy": one.leakage.guessed,
            "kind": "estimated",
        }
