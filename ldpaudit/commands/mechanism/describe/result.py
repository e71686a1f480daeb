"""What is exactly known of one mechanism."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from ldpaudit.mechanisms.analysis import LabelErrors
from ldpaudit.mechanisms.channel import Channel

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["exact", "upper bound"]
Points = tuple[tuple[float, float], ...]

LARGEST_SHOWN: Final = 4096
"""Cells of a channel that is repeated in an analysis."""
_NAMES: Final = {
    "epsilon": "ε (nats)",
    "lambda": "λ",
    "scale": "scale of the noise",
    "gamma": "γ",
    "width": "r (steps)",
    "sigma": "σ of the features",
    "radius": "radius of the features",
}
_LOSSES: Final = {
    "squared": "squared loss ½(ŷ − y)²",
    "absolute": "absolute loss |ŷ − y|",
    "poisson": "Poisson log loss ŷ − y log ŷ",
}


@dataclass(frozen=True)
class ColumnAnalysis:
    """One of several columns that a mechanism releases together.

    Attributes
    ----------
    labels : int
    epsilon_within : float
        ε of its label within the vector in nats: the others' labels known to the attacker.
    epsilon_alone : float
        ε in nats for somebody who sees this released column only.
    keep_probability : float
        P(released = true).
    frequency_error : float
        √n times the standard error of the unbiased estimate of a rare label's share from n rows.
    """

    labels: int
    epsilon_within: float
    epsilon_alone: float
    keep_probability: float
    frequency_error: float


COLUMN_HEADERS: Final = (
    "column",
    "labels",
    "ε, the others known",
    "ε, seen alone",
    "P(released = true)",
    "√n · error of a share",
)
"""Of a table of :attr:`Analysis.columns`."""


@dataclass(frozen=True, eq=False)
class Analysis:
    """A mechanism's privacy and error.

    Attributes
    ----------
    mechanism, description : str
        Its name, and one phrase with every parametrisation.
    kind : {"exact", "upper bound"}
        What ``epsilon``, ``delta``, ``rdp`` and ``total_variation`` are.
    epsilon, total_variation : float
        ε in nats, and the largest total variation distance of two labels' outputs (δ at ε = 0).
    delta, rdp : tuples of pairs
        (ε, δ(ε)) and (α, Rényi divergence of order α in nats); empty where they were too much to
        compute, which a note says.
    parametrisations : mapping
        The same mechanism in other words: ``lambda``, ``scale`` and others.
    parameters : mapping
        Its declaration.
    channel : Channel or None
        None where there is none, or it has more than 4,096 cells.
    errors : LabelErrors or None
        Bias and variance of each label, where labels and outputs are numbers.
    loss : mapping or None
        Expected losses under the prior; a text says why there is none. None without a prior.
    accuracy : float or None
        P(released = true) under the prior.
    floor : tuple of pairs
        (α, lower bound of the Rényi divergence with features drawn from their label, in nats);
        empty where none is known.
    columns : tuple of ColumnAnalysis
        Of a mechanism that releases several columns together; else empty.
    """

    mechanism: str
    description: str
    kind: Kind
    epsilon: float
    total_variation: float
    delta: Points
    rdp: Points
    parametrisations: Mapping[str, float]
    parameters: Mapping[str, Any]
    channel: Channel | None = None
    errors: LabelErrors | None = None
    loss: Mapping[str, float | str] | None = None
    accuracy: float | None = None
    floor: Points = ()
    notes: tuple[str, ...] = ()
    columns: tuple[ColumnAnalysis, ...] = ()

    def column_rows(self) -> list[tuple[int, int, float, float, float, float]]:
        """Return the columns as rows of a table, numbered from 1."""
        return [(number, *astuple(one)) for number, one in enumerate(self.columns, 1)]

    def __repr__(self) -> str:
        return f"Analysis({self.mechanism}: {self.description} ({self.kind}))"

    def to_frame(self) -> "pd.DataFrame":
        """Return each single number, indexed by its name: its value, or why there is none."""
        import pandas as pd

        columns = ["name", "value", "remark"]
        return pd.DataFrame(self.numbers(), columns=columns).set_index("name")

    def numbers(self) -> Iterator[tuple[str, float | str, str]]:
        """Yield each single number: its name, its value or why there is none, and a remark."""
        for key, value in self.parametrisations.items():
            yield _NAMES.get(key, key), value, self.kind if key == "epsilon" else ""
        if self.delta:
            yield "total variation", self.total_variation, f"δ(0), {self.kind}"
        for name, loss in (self.loss or {}).items():
            yield _LOSSES[name], loss, "expected"
        if self.accuracy is not None:
            yield "P(released = true)", self.accuracy, "under the prior"
        if self.errors is not None:
            bias = self.errors.largest_bias
            yield "largest |bias| of a label", bias, "" if bias else "unbiased"

    def stored(self) -> dict[str, Any]:
        """Return what the JSON file holds."""
        errors, channel = self.errors, self.channel
        columns = {"columns": [asdict(one) for one in self.columns]} if self.columns else {}
        return columns | {
            "schema_version": "1.0",
            "mechanism": self.mechanism,
            "description": self.description,
            "kind": self.kind,
            "epsilon": self.epsilon,
            "lambda": self.parametrisations.get("lambda"),
            "parametrisations": dict(self.parametrisations),
            "declaration": {"name": self.mechanism, **self.parameters},
            "total_variation": self.total_variation if self.delta else None,
            "delta": self.delta,
            "rdp": self.rdp,
            "conditional_rdp_floor": self.floor,
            "labels": None if errors is None else errors.labels.tolist(),
            "bias": None if errors is None else errors.bias.tolist(),
            "variance": None if errors is None else errors.variance.tolist(),
            "unbiased": None if errors is None else errors.unbiased,
            "loss": self.loss,
            "accuracy": self.accuracy,
            "channel": None
            if channel is None
            else {
                "labels": list(channel.classes),
                "outputs": list(channel.outputs),
                "matrix": channel.matrix.tolist(),
            },
            "notes": list(self.notes),
        }
