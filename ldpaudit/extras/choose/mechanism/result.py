"""What is exactly known of a mechanism: as JSON, on the terminal and on its page."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from pydantic import ConfigDict, Field, PrivateAttr

from ldpaudit.doors import Channel, Frozen, Said
from ldpaudit.extras.choose.lines import line_figure
from ldpaudit.extras.choose.planes import channel_figure
from ldpaudit.extras.choose.sheet import Paged, render_sheet
from ldpaudit.mechanisms.analysis import (
    LabelErrors,
)
from ldpaudit.reports.charts.curves import Points
from ldpaudit.reports.charts.figure import Figure, Table, drawn
from ldpaudit.reports.pages.page import Section, Tile
from ldpaudit.result import Number
from ldpaudit.result.numbers import exactly, fold

if TYPE_CHECKING:
    import pandas as pd

Pairs = tuple[tuple[Number, Number], ...]
_FEW: Final = 12
_FLOOR: Final = "Floor with features drawn from their label"
_UPPER: Final = "Bound with features drawn from their label, given the divergence"
# Characters of outputs' names that stand next to each other.
_ROW: Final = 60
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
# Of a table of :attr:`Analysis.columns`.
COLUMN_HEADERS: Final = (
    "column",
    "labels",
    "ε, the others known",
    "ε, seen alone",
    "P(released = true)",
    "√n · error of a share",
)
ERROR_AXES: Final = ("true label", "in units of the label")
Curve = tuple[str, Points]


class StoredChannel(Frozen):
    """A channel: what is released with which probability, for each label."""

    labels: list[Any] = Field(description="Names of the rows.")
    outputs: list[Any] = Field(description="Names of the columns.")
    matrix: list[list[Number]] = Field(
        description="The probability of each output (column) given each label (row)."
    )


class ColumnAnalysis(Frozen):
    """One of several columns that a mechanism releases together."""

    labels: int = Field(description="How many labels it has.")
    epsilon_within: Number = Field(
        description="ε of its label in nats, the others' labels known to the attacker."
    )
    epsilon_alone: Number = Field(
        description="ε in nats for somebody who sees this released column only."
    )
    keep_probability: Number = Field(
        description="The probability that the released label is the true one."
    )
    frequency_error: Number = Field(
        description="√n times the standard error of a rare label's estimated share from n rows."
    )


class Analysis(Paged):
    """Everything exactly known of one mechanism, a channel, or several releases together.

    Attributes
    ----------
    schema_version
        The version of this form.
    mechanism
        Its name.
    description
        One phrase with every parametrisation.
    kind
        What ``epsilon``, ``delta``, ``rdp`` and ``total_variation`` are.
    epsilon
        ε in nats.
    noise
        λ, where it has one.
    parametrisations
        The same mechanism in other words: ``lambda``, ``scale`` and others.
    declaration
        What a release that was made with it declares.
    total_variation
        The largest total variation distance of two labels' outputs, δ at ε = 0.
    delta
        Pairs of ε in nats and δ(ε); empty where they were too much to compute.
    rdp
        Pairs of an order α and the Rényi divergence of that order, in nats.
    floor
        Pairs of an order α and a lower bound of it with features drawn from the label.
    conditional
        Pairs of an order α and an upper bound with features drawn from the label, given the
        divergence of synthetic from true features (Busa-Fekete et al. 2023, Theorem 7.1).
    labels
        The labels, where they are numbers.
    bias
        Of each label: how far the released one is off on average.
    variance
        Of each label, of the released one.
    unbiased
        Whether the bias of every label is 0.
    loss
        Expected losses under the prior; a text says why there is none.
    accuracy
        The probability that the released label is the true one, under the prior.
    shown_channel
        None where there is none, or it is too large to repeat.
    notes
        Sentences for people.
    columns
        Of a mechanism that releases several columns together, one for each; else absent.
    """

    model_config = ConfigDict(populate_by_name=True)

    schema_version: str = "1.0"
    mechanism: str
    description: str
    kind: Literal["exact", "upper bound"]
    epsilon: Number
    noise: Number | None = Field(None, alias="lambda")
    parametrisations: dict[str, Number]
    declaration: dict[str, Any]
    total_variation: Number | None = None
    delta: Pairs = ()
    rdp: Pairs = ()
    floor: Pairs = Field((), alias="conditional_rdp_floor")
    conditional: Pairs = Field((), alias="conditional_rdp")
    labels: list[Number] | None = None
    bias: list[Number] | None = None
    variance: list[Number] | None = None
    unbiased: bool | None = None
    loss: dict[str, Any] | None = None
    accuracy: Number | None = None
    shown_channel: StoredChannel | None = Field(None, alias="channel")
    notes: tuple[str, ...] = ()
    columns: tuple[ColumnAnalysis, ...] = ()
    _designed: Channel | None = PrivateAttr(None)

    def makers(self) -> Mapping[str, Callable[[], str]]:
        """Return what makes the result, the page and the table of a channel that was designed."""
        if (made := self._designed) is None:
            return super().makers()
        import pandas as pd

        table = pd.DataFrame(made.matrix, made.classes, made.outputs)
        return {**super().makers(), "channel_out": lambda: str(table.to_csv(index_label="label"))}

    @property
    def channel(self) -> Channel | None:
        """The channel; None where there is none, or it is too large to repeat."""
        if (one := self.shown_channel) is None:
            return None
        return Channel(np.array(one.matrix), tuple(one.labels), tuple(one.outputs))

    @property
    def errors(self) -> LabelErrors | None:
        """Bias and variance by label; None where labels or outputs are not numbers."""
        if self.labels is None:
            return None
        labels, bias, variance = map(np.array, (self.labels, self.bias, self.variance))
        return LabelErrors(labels, bias, variance, math.inf if self.unbiased else 0.0)

    @property
    def parameters(self) -> dict[str, Any]:
        """What a declaration states besides the name."""
        return {key: value for key, value in self.declaration.items() if key != "name"}

    def __repr__(self) -> str:
        return f"Analysis({self.mechanism}: {self.description} ({self.kind}))"

    @property
    def _sentence(self) -> str:
        return self.description

    def to_frame(self) -> "pd.DataFrame":
        """Return each single number, indexed by its name: its value, or why there is none."""
        import pandas as pd

        columns = ["name", "value", "remark"]
        return pd.DataFrame(self.numbers(), columns=columns).set_index("name")

    def numbers(self) -> Iterator[tuple[str, float | str, str]]:
        """Yield each single number: its name, its value or why there is none, and a remark."""
        for key, value in self.parametrisations.items():
            yield _NAMES.get(key, key), value, self.kind if key == "epsilon" else ""
        if self.total_variation is not None:
            yield "total variation", self.total_variation, f"δ(0), {self.kind}"
        for name, loss in (self.loss or {}).items():
            yield _LOSSES[name], loss, "expected"
        if self.accuracy is not None:
            yield "P(released = true)", self.accuracy, "under the prior"
        if (errors := self.errors) is not None:
            bias = errors.largest_bias
            yield "largest |bias| of a label", bias, "" if bias else "unbiased"

    def column_rows(self) -> list[tuple[Any, ...]]:
        """Return the columns as rows of a table, numbered from 1."""
        return [(number, *one.model_dump().values()) for number, one in enumerate(self.columns, 1)]

    def stored(self) -> dict[str, Any]:
        """Return what the JSON file holds."""
        absent = {name for name in ("columns", "conditional") if not getattr(self, name)}
        return self.model_dump(by_alias=True, exclude=absent)

    def page(self) -> str:
        """Return the page."""
        kind = "Every number here is exact: computed from the declaration alone, without data."
        if self.kind == "upper bound":
            kind = (
                "ε, δ(ε) and the Rényi curve here are upper bounds: the truth is never above them."
            )
        most = fold(self.epsilon, "up")
        shift = most if math.isinf(self.epsilon) else f"at most {most}"
        odds = f"What it releases shifts the odds between two true labels {shift}."
        return render_sheet(
            what="Mechanism",
            title=self.mechanism,
            lead=f"{self.description[:1].upper()}{self.description[1:]}. {odds} {kind}",
            tiles=tuple(
                Tile(name, exactly(value), remark)
                for name, value, remark in self.numbers()
                if not isinstance(value, str)
            ),
            sections=tuple(_sections(self)),
            notes=self.notes,
        )

    def said(self, *, quiet: bool) -> Iterator[Said]:
        """Yield one line, then tables: title, headers and rows; long ones in part."""
        yield f"{self.mechanism}: {self.description} ({self.kind})"
        if quiet:
            return
        rows: list[tuple[str, ...]] = [
            (f"{name}, {more}" if more else name, cell(value))
            for name, value, more in self.numbers()
        ]
        yield "Privacy", ("parameter", "value"), rows
        if self.columns:
            yield "Columns", COLUMN_HEADERS, [tuple(map(cell, row)) for row in self.column_rows()]
        floor, orders = f"{_FLOOR} (Theorem 7.2)", ("order α", "nats")
        upper = f"{_UPPER} (Theorem 7.1)"
        for title, axes, points in (
            ("δ(ε)", ("ε (nats)", "δ"), self.delta),
            ("Rényi divergence", orders, self.rdp),
            (upper, orders, self.conditional),
            (floor, orders, self.floor),
        ):
            some = dict.fromkeys((*points[:: max(1, -(-len(points) // _FEW))], *points[-1:]))
            if some:
                yield title, axes, [(exactly(x), exactly(y)) for x, y in some]
        if (errors := self.errors) is not None:
            k, few = len(errors.labels), min(len(errors.labels), _FEW)
            places = sorted({round(i * (k - 1) / (few - 1 or 1)) for i in range(few)})
            bias = 0 * errors.bias if errors.unbiased else errors.bias
            columns = (errors.labels, bias, errors.variance)
            rows = [tuple(exactly(float(column[i])) for column in columns) for i in places]
            title = "Error by label" if k <= _FEW else f"Error by label ({len(rows)} of {k})"
            yield title, ("label", "bias", "variance"), rows
        channel = self.shown_channel
        if channel is not None and max(len(channel.labels), len(channel.outputs)) <= _FEW:
            labels, outputs = ([*map(cell, side)] for side in (channel.labels, channel.outputs))
            cells = [[f"{p:.6f}" for p in row] for row in channel.matrix]
            title, headers = "Channel", ["P(output | label)", *outputs]
            if sum(map(len, outputs)) > _ROW:
                title, headers = "Channel: P(output | label)", ["output", *labels]
                labels, cells = outputs, list(map(list, zip(*cells, strict=True)))
            yield title, headers, [(label, *row) for label, row in zip(labels, cells, strict=True)]
        yield from (f"\nNote: {note}" for note in self.notes)


def _sections(analysis: Analysis) -> Iterator[Section]:
    if analysis.columns:
        rows = tuple(tuple(map(exactly, row)) for row in analysis.column_rows())
        intro = (
            "What each column reveals if the attacker knows the true labels of all others, and if "
            "only this released column is seen; the error is that of a rare label's estimated "
            "share."
        )
        table = ("The columns", Table(COLUMN_HEADERS, rows))
        yield Section("columns", "Columns", (intro,), tables=(table,))
    figures: list[Figure | None] = []
    if analysis.delta:
        curve = [("δ(ε)", analysis.delta)]
        figures.append(line_figure("delta", "δ(ε)", ("ε (nats)", "δ"), curve, analysis.kind))
    if analysis.rdp:
        finite = [(x, y) for x, y in analysis.rdp if math.isfinite(x) and math.isfinite(y)]
        points: list[Curve] = [("D_α", finite or [(1.0, 0.0)])]
        if analysis.conditional:
            points.append((_UPPER, list(analysis.conditional)))
        if analysis.floor:
            points.append((_FLOOR, list(analysis.floor)))
        title, orders = "Rényi divergence by order", ("order α", "nats")
        figures.append(line_figure("rdp", title, orders, points, analysis.kind))
    curves = drawn(figures)
    yield Section(
        "privacy",
        "Privacy",
        (
            "δ(ε) is the least δ for which the mechanism is (ε, δ)-label-DP; it is 0 from its ε "
            "on. The Rényi divergence of order α between the outputs of two labels rises to ε as α "
            "grows.",
        ),
        curves,
        missing="" if curves else "The curves are flat, infinite or too large to compute.",
    )
    if (channel := analysis.shown_channel) is not None:
        labels, outputs = ([*map(cell, side)] for side in (channel.labels, channel.outputs))
        intro = "How likely each output is under each true label."
        figure = channel_figure(labels, outputs, channel.matrix)
        yield Section("channel-matrix", "Channel", (intro,), (figure,))
    if (errors := analysis.errors) is not None:
        bias, spread = error_points(errors)
        title = "Bias and standard deviation by label"
        named = [("standard deviation √Var[ŷ | y]", spread), ("bias E[ŷ | y] − y", bias)]
        plane = line_figure("errors", title, ERROR_AXES, named, "exact")
        intro = (
            "The mechanism is unbiased: every label is released right on average."
            if errors.unbiased
            else "The mechanism is biased: some labels are released too high or too low on average."
        )
        yield Section("label-errors", "Error by label", (intro,), drawn([plane]))


def error_points(errors: LabelErrors) -> tuple[list[tuple[float, float]], ...]:
    """Return bias and standard deviation as points (label, value)."""
    bias, spread = errors.bias * (not errors.unbiased), np.sqrt(np.maximum(errors.variance, 0.0))
    labels = errors.labels.tolist()
    return tuple(list(zip(labels, one.tolist(), strict=True)) for one in (bias, spread))


def cell(value: Any) -> str:
    """Return a number of a table as text; names as they are."""
    return str(value) if isinstance(value, bool | str | int) else exactly(float(value))
