"""What a mechanism says about itself: its traits, and answers to what the rest of the house asks.

A family is one class. It states its :class:`Traits`, derives from the bases below that fit it, and
is registered by name (:mod:`ldpaudit.mechanisms.registry`, or the entry-point group
``ldpaudit.mechanisms`` for other packages). Nothing outside this package compares a mechanism's
name or tests for its class; what differs between mechanisms is asked of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

import numpy as np

from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.mechanisms.options import MechanismOptions
from ldpaudit.release import FloatArray, Label
from ldpaudit.result import Estimate

if TYPE_CHECKING:
    from ldpaudit.mechanisms.design import Candidate

Need = Literal[
    "prior",
    "range",
    "matrix",
    "public model",
    "synthetic rows",
    "feature noise",
    "protocol",
    "bags",
]
"""What a mechanism cannot be made or applied without, besides its labels and ε or λ."""
UNBIASED: Final = 1e-9
"""How far from unbiased rounding, or a program's solver, may leave a mechanism that is unbiased by
construction, in units of its scale."""
OF_ITS_OWN: frozenset[Need] = frozenset({"matrix", "public model", "feature noise", "protocol"})
"""Needs that one value of ε or λ after another does not meet: such a mechanism is not swept."""


@dataclass(frozen=True, kw_only=True)
class Traits:
    """What a family of mechanisms is. No field has a default: a family states them all.

    Attributes
    ----------
    name : str
        The name in declarations and on the command line, for instance ``"double-rr"``.
    title : str
        The name in running text, for instance ``"double randomized response"``.
    labels : {"classes", "numbers"}
        What the true labels are.
    outputs : {"labels", "numbers", "reports", "sums", "unknown"}
        What is released for a label: one of the labels, a number, a report of a protocol, a sum
        over a bag, or something that is not known.
    label_depends_on_features : bool
        Whether P(released label | true label) may differ between rows with different features.
        Bounds on ε for one channel are withheld then.
    features : {"unchanged", "noisy", "partly synthetic", "withheld", "unknown"}
        What is released of the features.
    rows : {"independent", "bags"}
        Whether each row is released by itself.
    options : tuple of str
        The options of ``ldpaudit privatize`` that it uses, besides those that all have; empty
        where it cannot be applied to a table.
    stated_by : tuple of {"epsilon", "lambda"}
        The parameters by which its noise can be stated; empty where nothing states it.
    whole : bool
        Whether its labels and one of ``stated_by`` describe it completely, so that a policy can
        claim another ε for the same mechanism.
    needs : frozenset of str
        What else it cannot be made or applied without.
    """

    name: str
    title: str
    labels: Literal["classes", "numbers"]
    outputs: Literal["labels", "numbers", "reports", "sums", "unknown"]
    label_depends_on_features: bool
    features: Literal["unchanged", "noisy", "partly synthetic", "withheld", "unknown"]
    rows: Literal["independent", "bags"]
    options: tuple[str, ...]
    stated_by: tuple[Literal["epsilon", "lambda"], ...]
    whole: bool
    needs: frozenset[Need]

    @property
    def numeric(self) -> bool:
        """Whether the true labels are numbers."""
        return self.labels == "numbers"

    @property
    def swept(self) -> bool:
        """Whether a sweep over ε or λ can apply it."""
        return bool(self.options) and self.needs.isdisjoint(OF_ITS_OWN)

    @property
    def feature_values_kept(self) -> bool:
        """Whether some feature values are released as they are."""
        return self.features not in ("noisy", "withheld")

    @property
    def features_replaced(self) -> bool:
        """Whether whole feature rows are, or may be, replaced by others."""
        return self.features in ("partly synthetic", "unknown")


class Mechanism(ABC):
    """A mechanism as it was declared: a frozen value with an exact analysis."""

    traits: ClassVar[Traits]

    if TYPE_CHECKING:  # Nothing at run time: a dataclass may have them as fields.

        @property
        def epsilon(self) -> float | None:
            """The declared mechanism's ε in nats; None where nothing is claimed."""

        @property
        def channel(self) -> Channel | None:
            """The channel of shape (k, m); None where it is unknown, not finite, or not all."""

    @property
    def name(self) -> str:
        """The name in declarations, for instance ``"randomized-response"``."""
        return self.traits.name

    @property
    @abstractmethod
    def description(self) -> str:
        """One phrase with every parametrisation, for people; holds no label value."""

    @property
    def label_channel(self) -> Channel | None:
        """The channel of the label alone; None where it is unknown or depends on the features."""
        return self.channel

    @property
    def unchanged_share(self) -> float | None:
        """The share of rows whose features are released as they are; None where unknown."""
        shares = {"unchanged": 1.0, "noisy": 0.0, "withheld": 0.0}
        return shares.get(self.traits.features)

    @abstractmethod
    def declaration(self) -> Mapping[str, Any]:
        """Return the parameters that rebuild the mechanism (without its name)."""

    @classmethod
    @abstractmethod
    def from_parameters(cls, parameters: Mapping[str, Any], classes: tuple[Label, ...]) -> Self:
        """Build it from a declaration, with every parameter checked.

        Parameters
        ----------
        parameters : mapping
            As :meth:`declaration` returns them; ``epsilon`` may stand for ``lambda``.
        classes : tuple
            The labels where the declaration names none.

        Raises
        ------
        InputError
            If a parameter is missing, unknown or out of range, or two of them disagree.
        """

    @classmethod
    def parameters_from(cls, options: MechanismOptions) -> dict[str, Any]:
        """Return the declaration's parameters that the options state, unchecked."""
        return options.stated() | options.stated_classes()

    @classmethod
    def from_options(cls, options: MechanismOptions) -> "Mechanism":
        """Build it from the options of a command.

        Raises
        ------
        InputError
            If an option is missing, unknown or out of range.
        """
        return cls.from_parameters(cls.parameters_from(options), options.classes or ())

    @classmethod
    def applied_range(cls, labels: LabelRange) -> LabelRange:
        """Return the range on which it is applied to a table: labels count in ones by default."""
        return labels if labels.step is not None else LabelRange(labels.low, labels.high, 1.0)

    @classmethod
    def candidates(cls) -> "Iterator[Candidate]":
        """Yield what ``ldpaudit mechanism design`` compares of this family; nothing by default."""
        return iter(())

    def parametrisations(self) -> dict[str, float]:
        """Return the ways to state the mechanism: ``epsilon``, ``lambda``, ``scale`` and others."""
        return {} if self.epsilon is None else {"epsilon": float(self.epsilon)}

    def remarks(self) -> tuple[str, ...]:
        """Return what must be known to read ε, δ(ε) and the Rényi curve rightly."""
        return ()

    def exact_estimates(self) -> Iterator[Estimate]:
        """Yield further exact numbers of the mechanism, for the audit's report."""
        return iter(())


class AnalysedMechanism(Mechanism):
    """A mechanism whose whole privacy curve is known exactly."""

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which it is (ε, δ)-label-DP, ε ≥ 0 in nats."""

    @abstractmethod
    def rdp(self, alpha: float) -> float:
        """Return its Rényi label-DP parameter at order α > 0, in nats."""


class NumericMechanism(AnalysedMechanism):
    """A mechanism on labels that are numbers, with its errors and likelihoods.

    A mechanism with finitely many labels and outputs of any type derives from it as well; there
    these methods raise an :class:`~ldpaudit.errors.InputError` where the values are no numbers.
    """

    @property
    @abstractmethod
    def label_bounds(self) -> tuple[float, float]:
        """The lowest and the highest label."""

    @property
    @abstractmethod
    def label_values(self) -> FloatArray | None:
        """All labels in increasing order, float64 of shape (k,); None: any number of a range."""

    @property
    @abstractmethod
    def output_values(self) -> FloatArray | None:
        """All outputs, float64 of shape (m,); None where they are not finitely many."""

    @property
    def error_tolerance(self) -> float:
        """Up to which |bias|, in units of the mechanism's scale, is rounding only."""
        return 0.0

    @abstractmethod
    def bias(self, labels: FloatArray | None = None) -> FloatArray:
        """Return E[ŷ | y] − y, float64 of shape (k,).

        Parameters
        ----------
        labels : float64 array of shape (k,), optional
            Label values; default: all labels.
        """

    @abstractmethod
    def variance(self, labels: FloatArray | None = None) -> FloatArray:
        """Return Var[ŷ | y], as :meth:`bias`."""

    @abstractmethod
    def expected_loss(self, prior: Sequence[float] | FloatArray, name: Loss = "squared") -> float:
        """Return E[ℓ(ŷ, y)] for y drawn from a prior of shape (k,); squared is ½(ŷ − y)²."""

    def bin_edges(self, bins: int) -> FloatArray:
        """Return bounds between bins of the outputs, increasing, at most bins − 1 of them."""
        # As many outputs in each: those of an unbiased randomizer are far apart at the ends.
        outputs = np.sort(np.asarray(self.output_values, dtype=np.float64))
        places = np.unique(np.linspace(0, len(outputs), bins + 1).astype(int)[1:-1])
        places = places[places > 0]
        return np.asarray((outputs[places - 1] + outputs[places]) / 2)

    @abstractmethod
    def binned(self, edges: Sequence[float], labels: FloatArray | None = None) -> Channel:
        """Return the channel from labels to bins of the output: post-processing, never above ε.

        Parameters
        ----------
        edges : sequence of float, increasing
            m − 1 bounds of m bins: up to and with the first, …, above the last.
        labels : float64 array of shape (k,), optional
            Label values; default: all labels.

        Returns
        -------
        Channel
            With outputs 0 … m − 1.
        """

    @abstractmethod
    def likelihood(self, released: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the likelihood of each released number under each true label.

        Parameters
        ----------
        released : float64 array of shape (n,)
            Released numbers.
        labels : float64 array of shape (g,)
            True labels: of finitely many, some of them; else any inside the declared range.

        Returns
        -------
        float64 array of shape (n, g)
            Densities, or probabilities where the output is one of finitely many or an end of the
            range that outputs are clipped to; comparable within a row only.
        """
