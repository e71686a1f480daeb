"""The form of what ``describe``, ``channel`` and ``compose`` store."""

from typing import Annotated, Any

from pydantic import Field

from ldpaudit.commands.mechanism.describe.result import Kind
from ldpaudit.result import Frozen, Number


class StoredChannel(Frozen):
    """A channel: what is released with which probability, for each label."""

    labels: list[Any]
    """Names of the rows."""
    outputs: list[Any]
    """Names of the columns."""
    matrix: list[list[Number]]
    """The probability of each output (column) given each label (row)."""


class StoredColumn(Frozen):
    """One of several columns that a mechanism releases together."""

    labels: int
    """How many labels it has."""
    epsilon_within: Number
    """ε of its label in nats, the others' labels known to the attacker."""
    epsilon_alone: Number
    """ε in nats for somebody who sees this released column only."""
    keep_probability: Number
    """The probability that the released label is the true one."""
    frequency_error: Number
    """√n times the standard error of a rare label's estimated share from n rows."""


class StoredAnalysis(Frozen):
    """Everything exactly known of one mechanism, a channel, or several releases together."""

    schema_version: str
    """The version of this form."""
    mechanism: str
    """Its name."""
    description: str
    """One phrase with every parametrisation."""
    kind: Kind
    """What ``epsilon``, ``delta``, ``rdp`` and ``total_variation`` are."""
    epsilon: Number
    """ε in nats."""
    noise: Annotated[Number | None, Field(alias="lambda")]
    """λ, where it has one."""
    parametrisations: dict[str, Number]
    """The same mechanism in other words: ``lambda``, ``scale`` and others."""
    declaration: dict[str, Any]
    """What a release that was made with it declares."""
    total_variation: Number | None
    """The largest total variation distance of two labels' outputs, δ at ε = 0."""
    delta: list[tuple[Number, Number]]
    """Pairs of ε in nats and δ(ε); empty where they were too much to compute."""
    rdp: list[tuple[Number, Number]]
    """Pairs of an order α and the Rényi divergence of that order, in nats."""
    conditional_rdp_floor: list[tuple[Number, Number]]
    """Pairs of an order α and a lower bound of it with features drawn from the label."""
    labels: list[Number] | None
    """The labels, where they are numbers."""
    bias: list[Number] | None
    """Of each label: how far the released one is off on average."""
    variance: list[Number] | None
    """Of each label, of the released one."""
    unbiased: bool | None
    """Whether the bias of every label is 0."""
    loss: dict[str, Any] | None
    """Expected losses under the prior; a text says why there is none."""
    accuracy: Number | None
    """The probability that the released label is the true one, under the prior."""
    channel: StoredChannel | None
    """None where there is none, or it is too large to repeat."""
    notes: list[str]
    """Sentences for people."""
    columns: list[StoredColumn] = Field(default_factory=list)
    """Of a mechanism that releases several columns together, one for each; else absent."""
