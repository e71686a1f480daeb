"""The interface of a mechanism: its traits, and the methods that the other packages call.

A family is a row (:class:`~ldpaudit.mechanisms.finite.Family`, a function that returns a channel)
or, of other packages, a class that states its :class:`Traits` and derives from the bases below. It
is registered by name (:mod:`ldpaudit.mechanisms.registry`, or the entry-point group
``ldpaudit.mechanisms`` for other packages). Code outside this package never compares a mechanism's
name or tests for its class: it asks its traits, or what it ``offers``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    Self,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.label_range import LabelRange, Loss
from ldpaudit.mechanisms.parameters import Parameter, fields_of, plain
from ldpaudit.release import FloatArray, Label
from ldpaudit.result import Estimate

# What a mechanism needs besides its labels and ε or λ.
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
# The largest absolute bias that rounding or a solver may leave in a mechanism that is unbiased by
# construction, in units of its scale.
UNBIASED: Final = 1e-9
# Needs that more than ε or λ must meet: mechanisms with one of these are not swept.
OF_ITS_OWN: frozenset[Need] = frozenset({"matrix", "public model", "feature noise", "protocol"})


@dataclass(frozen=True, kw_only=True)
class Traits:
    """The traits of a family of mechanisms. No field has a default: a family states them all.

    Attributes
    ----------
    name : str
        The name in declarations and on the command line, for instance ``"double-rr"``.
    title : str
        The name in running text, for instance ``"double randomized response"``.
    labels : {"classes", "numbers"}
        What the true labels are.
    outputs : {"labels", "numbers", "reports", "sums", "unknown"}
        What is released for a label: one of the labels (or of the ``outputs`` that its
        declaration lists), a number, a report of a protocol, a sum over a bag, or unknown.
    label_depends_on_features : bool
        Whether P(released label | true label) may depend on a row's features. If so, bounds on ε
        for one channel are withheld.
    features : {"unchanged", "noisy", "partly synthetic", "withheld", "unknown"}
        What is released of the features.
    rows : {"independent", "bags"}
        Whether rows are released independently, or as sums over bags.
    options : tuple of str
        The options of ``ldpaudit privatize`` that it uses, besides those common to all; empty if
        it cannot be applied to a table.
    stated_by : tuple of {"epsilon", "lambda"}
        The parameters that can state its noise; empty if none can.
    whole : bool
        Whether its labels and one of ``stated_by`` describe it completely, so that a policy can
        claim another ε for the same mechanism.
    needs : frozenset of str
        What else is needed to build or apply it.
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

    def mistaken(self) -> str:
        """Return the names of the traits that are not as stated above, separated by commas."""
        return ", ".join(
            name
            for name, hint in get_type_hints(type(self)).items()
            if not _fits(getattr(self, name), hint)
        )

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
        """Whether some feature values are released unchanged."""
        return self.features not in ("noisy", "withheld")

    @property
    def features_replaced(self) -> bool:
        """Whether whole feature rows are, or may be, replaced by others."""
        return self.features in ("partly synthetic", "unknown")


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a trait has the type that is stated for it."""
    kind, inner = get_origin(hint), get_args(hint)
    if kind is Literal:
        return isinstance(value, str) and value in inner
    if kind in (tuple, frozenset):
        return isinstance(value, kind) and all(_fits(one, inner[0]) for one in value)
    return isinstance(value, hint)


def numeric_traits(name: str, title: str, options: tuple[str, ...], need: Need) -> Traits:
    """Return the traits of a family stated by ε that releases a number for each row's number.

    ``need`` is what it needs besides its labels and ε.
    """
    return Traits(
        name=name,
        title=title,
        labels="numbers",
        outputs="numbers",
        label_depends_on_features=False,
        features="unchanged",
        rows="independent",
        options=options,
        stated_by=("epsilon",),
        whole=False,
        needs=frozenset({need}),
    )


# The options of ``ldpaudit privatize`` that several mechanisms use, by their fields' names.
CLASSES: Final = ("classes", "labels")
PRIOR: Final = ("prior", "private_prior")
RESPONSE: Final = ("epsilon", "noise", *CLASSES)
NOISE: Final = ("epsilon", "labels", "clipped")
STEPS: Final = (*NOISE, "round")
DESIGN: Final = ("epsilon", *CLASSES, *PRIOR, "loss", "round")
SYNTHETIC: Final = ("synthetic", "generator", "generator_data", "synthetic_out", "synthetic_rows")


@dataclass(frozen=True, kw_only=True, eq=False)
class MechanismOptions:
    """A mechanism as a command states it.

    Parameters
    ----------
    epsilon, noise : float or None
        ε in nats or λ; not both.
    classes : tuple or None
        The labels one by one; None where they are unknown, or any number in a range.
    labels : LabelRange or None
        The range of numeric labels.
    prior : float64 array of shape (k,) or None
        The probabilities of ``classes``.
    loss : {"squared", "absolute", "poisson"}
        The loss that a design for a prior minimises.
    settings : mapping
        Further parameters by their names in the declaration, such as ``clipped`` or ``floor``.
    """

    epsilon: float | None = None
    noise: float | None = None
    classes: tuple[Label, ...] | None = None
    labels: LabelRange | None = None
    prior: FloatArray | None = None
    loss: Loss = "squared"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def stated(self) -> dict[str, Any]:
        """Return the stated parameters of a declaration, without labels."""
        amounts = {"epsilon": self.epsilon, "lambda": self.noise}
        return dict(self.settings) | {k: v for k, v in amounts.items() if v is not None}

    def stated_classes(self) -> dict[str, Any]:
        """Return the labels one by one, as in a declaration; nothing where unknown."""
        return {} if self.classes is None else {"classes": list(self.classes)}

    def stated_range(self) -> dict[str, Any]:
        """Return the labels' range, as in a declaration; nothing where unknown."""
        return {} if self.labels is None else self.labels.declaration()

    def for_prior(self, name: str) -> tuple[tuple[Label, ...], FloatArray, float]:
        """Return labels, prior and ε for a mechanism that is designed for a prior."""
        if self.settings:
            raise InputError(f"The mechanism {name!r} takes no further parameter here.")
        if self.classes is None or self.prior is None or self.epsilon is None:
            raise InputError(f"The mechanism {name!r} needs a prior: give --prior FILE.")
        return self.classes, self.prior, self.epsilon


Ability = TypeVar("Ability")


class Mechanism(ABC):
    """A mechanism as it was declared: a frozen value with an exact analysis.

    A subclass states its ``traits`` and writes ``epsilon``, ``channel`` and :attr:`description`. If
    its parameters are its fields, it lists them in ``declared``; otherwise it overrides
    :meth:`declaration` and :meth:`from_parameters`. A package registers it, or a :class:`Family`,
    in the group ``ldpaudit.mechanisms``.

    Attributes
    ----------
    traits : Traits
        What the mechanism releases, and what it needs.
    declared : tuple of Parameter
        What a declaration states, in the order of the constructor; may be empty.
    epsilon : float or None
        The declared mechanism's exact ε in nats; None where nothing is claimed.
    channel : Channel or None
        P(released label | true label) of shape (k, m); None where it is unknown, not finite, or
        only a part of what is released.
    """

    traits: Traits
    declared: ClassVar[tuple[Parameter, ...]] = ()

    if TYPE_CHECKING:  # Nothing at run time: a dataclass may have them as fields.

        @property
        def epsilon(self) -> float | None:
            """The declared mechanism's ε in nats; None where nothing is claimed."""

        @property
        def channel(self) -> Channel | None:
            """The channel of shape (k, m); None where unknown, not finite or only a part."""

    @property
    def name(self) -> str:
        """The name in declarations, for instance ``"randomized-response"``."""
        return self.traits.name

    @property
    @abstractmethod
    def description(self) -> str:
        """One phrase with every parametrisation; holds no label value."""

    @property
    def label_channel(self) -> Channel | None:
        """The channel of the label alone; None where unknown or dependent on the features."""
        return self.channel

    @property
    def by_stratum(self) -> "tuple[Mechanism, ...]":
        """What releases the labels of each stratum, in the declared order; empty without strata."""
        return ()

    @property
    def after_rounding(self) -> "Mechanism":
        """What releases the labels once they are rounded: itself, unless they are rounded first."""
        return self

    @property
    def unchanged_share(self) -> float | None:
        """The share of rows whose features are released unchanged; None where unknown."""
        shares = {"unchanged": 1.0, "noisy": 0.0, "withheld": 0.0}
        return shares.get(self.traits.features)

    def offers(self, ability: type[Ability]) -> Ability | None:
        """Return itself where it has an ``ability``, such as noise on features; else None.

        ``ability`` is one of the classes of ``ldpaudit.doors`` that mechanisms derive from, for
        instance :class:`~ldpaudit.mechanisms.capabilities.NoisyFeatures`.
        """
        return self if isinstance(self, ability) else None

    def conditional_rdp_floor(self, alpha: float) -> float | None:  # noqa: ARG002
        """Return a lower bound in nats of its Rényi DP at ``alpha`` > 1 if features follow labels.

        It is exact, for features that are drawn given their label. None: no such bound is known.
        """
        return None

    def declaration(self) -> Mapping[str, Any]:
        """Return the parameters that rebuild the mechanism (without its name)."""
        stated = {p.name: plain(getattr(self, p.field or p.name)) for p in self.declared}
        return {name: value for name, value in stated.items() if value is not None}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any], classes: tuple[Label, ...]) -> Self:
        """Build it from a declaration, with every parameter checked.

        Parameters
        ----------
        parameters : mapping
            As :meth:`declaration` returns them; ``epsilon`` may replace ``lambda``.
        classes : tuple
            The labels to use where the declaration states none.

        Raises
        ------
        InputError
            If a parameter is missing, unknown or out of range, or two of them disagree.
        """
        return cls(**fields_of(cls.declared, parameters, classes, cls.traits.name))

    def parametrisations(self) -> dict[str, float]:
        """Return the values of its parametrisations: ``epsilon``, ``lambda``, ``scale`` …"""
        return {} if self.epsilon is None else {"epsilon": float(self.epsilon)}

    def remarks(self) -> tuple[str, ...]:
        """Return what a reader must know to interpret ε, δ(ε) and the Rényi curve."""
        return ()

    def exact_estimates(self) -> Iterator[Estimate]:
        """Yield further exact numbers for the audit's report."""
        return iter(())


@dataclass(frozen=True)
class Problem:
    """What to design a mechanism for.

    k labels with a step, their probabilities of shape (k,), ε > 0 in nats, and the loss to minimise
    in expectation; squared is ½(ŷ − y)².
    """

    labels: LabelRange
    prior: FloatArray
    epsilon: float
    loss: Loss = "squared"


@dataclass(frozen=True)
class Proposal:
    """A mechanism, and among which its loss is proved to be the least; "" where nothing is."""

    mechanism: Mechanism
    optimal_among: str = ""


class AnalysedMechanism(Mechanism):
    """A mechanism whose privacy curve is known exactly: a channel's, or by its own methods.

    One with a channel of the same privacy states it as :attr:`compared`; another one overrides
    :meth:`delta` and :meth:`rdp`. Its ``epsilon`` is a number in nats, ∞ where none is finite.
    """

    if TYPE_CHECKING:

        @property
        def epsilon(self) -> float:
            """The declared mechanism's exact ε in nats; ∞ where none is finite."""

    @property
    def compared(self) -> Channel | None:
        """A channel with the same privacy; None where δ(ε) and the Rényi curve need no channel."""
        return None

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which it is (ε, δ)-label-DP at ``epsilon`` ≥ 0 in nats."""
        assert self.compared is not None
        return self.compared.delta(epsilon)

    def rdp(self, alpha: float) -> float:
        """Return its Rényi label-DP parameter in nats at the order ``alpha`` > 0."""
        assert self.compared is not None
        return self.compared.rdp(alpha)


class NumericMechanism(AnalysedMechanism):
    """A mechanism on numeric labels, with its errors and likelihoods.

    Mechanisms with finitely many labels and outputs of any type derive from it too; their methods
    raise an :class:`~ldpaudit.errors.InputError` where labels or outputs are not numbers.
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
    def output_step(self) -> float | None:
        """The step between outputs, from the lowest label on; None where they are in no steps."""
        return None

    @property
    def error_tolerance(self) -> float:
        """The largest absolute bias that is only rounding, in units of the mechanism's scale."""
        return 0.0

    @abstractmethod
    def bias(self, labels: FloatArray | None = None) -> FloatArray:
        """Return E[ŷ | y] − y of ``labels``, (k,) values, default all; float64 of shape (k,)."""

    @abstractmethod
    def variance(self, labels: FloatArray | None = None) -> FloatArray:
        """Return Var[ŷ | y] of ``labels``, (k,) values, default all; float64 of shape (k,)."""

    @abstractmethod
    def expected_loss(self, prior: Sequence[float] | FloatArray, name: Loss = "squared") -> float:
        """Return E[ℓ(ŷ, y)] for y drawn from a ``prior`` of shape (k,).

        ``name`` is the loss: ``"squared"``, ½(ŷ − y)²; ``"absolute"``, |ŷ − y|; or ``"poisson"``,
        ŷ − y log ŷ.
        """

    def accuracy(self, prior: Sequence[float] | FloatArray) -> float | None:  # noqa: ARG002
        """Return P(released = true) of a ``prior`` of shape (k,); None: no label is an output."""
        return None

    def bin_edges(self, bins: int) -> FloatArray:
        """Return at most bins − 1 increasing bounds between bins of the outputs."""
        # Equal numbers of outputs: those of an unbiased randomizer are far apart at the ends.
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
            The m − 1 bounds of m bins; each bin includes its upper bound.
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
            True labels: some of the finitely many, or any numbers in the declared range.

        Returns
        -------
        float64 array of shape (n, g)
            Densities, or probabilities where outputs are finitely many or clipped to an end of
            the range; comparable within a row only.
        """
