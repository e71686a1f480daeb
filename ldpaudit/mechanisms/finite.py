"""Families of mechanisms, and those that are a channel, from which everything else follows."""

# A :class:`Family` is a row of a table: its traits, its parameters, and the function that returns
# its channel. Its mechanisms are values of the one class :class:`FiniteMechanism`, of a class below
# it where not all pairs of labels need be looked at, or of a class below :class:`Made` where one
# row's channel is not all.

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pkgutil import resolve_name
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import Randomness, WeightTable
from ldpaudit.mechanisms.interface import (
    Mechanism,
    MechanismOptions,
    NumericMechanism,
    Problem,
    Proposal,
    Traits,
)
from ldpaudit.mechanisms.label_range import LabelRange, Loss, loss, nearest
from ldpaudit.mechanisms.parameters import (
    Parameter,
    check_numeric_classes,
    check_prior,
    fields_of,
)
from ldpaudit.release import FloatArray, IndexArray, IntArray, Label

# A loss is called optimal if it exceeds its certified bound by at most this share.
PROVED: Final = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Family:
    """A family of mechanisms: a row of the table, and what builds its mechanisms.

    A package registers one in the group ``ldpaudit.mechanisms``. Called with its parameters, in
    order or by the names of their fields, it returns a mechanism.

    Parameters
    ----------
    traits : Traits
        What its mechanisms release and need; it names the family.
    parameters : tuple of Parameter
        What a declaration states, in the order of the constructor.
    channel : callable
        Returns the channel of given parameters, by the names of their fields; none for a family
        that is no finite channel.
    describe : callable
        One phrase for a mechanism, with every parametrisation; holds no label value.
    kind : type, optional
        The class of its mechanisms where they have closed forms or are no finite channel, by
        default :class:`FiniteMechanism`.
    check : callable, optional
        Checks the parameters together; takes them by name, raises an InputError.
    read : callable, optional
        Turns a declaration (and the labels where it states none) into the parameters where the two
        differ, such as ε into λ.
    stated : callable, optional
        Turns the options of a command into a declaration, by default ε or λ, settings and classes.
    tolerance : float
        The largest absolute bias that is only rounding, in units of the mechanism's scale.
    remarks : tuple of str
        What a reader must know to interpret ε, δ(ε) and the Rényi curve.
    best : callable, optional
        Builds the best mechanism for labels, prior, ε and loss where a family needs a prior.
    designs : mapping
        For each variant, what builds it in ``ldpaudit mechanism design``.

    Examples
    --------
    >>> import numpy as np
    >>> from ldpaudit.mechanisms import Channel, RandomizedResponse
    >>> print(RandomizedResponse(("no", "yes"), 0.5).description)
    randomized response on 2 labels: λ = 0.5, ε = 1.09861 nats, ...
    """

    traits: Traits
    parameters: tuple[Parameter, ...] = ()
    channel: Callable[..., Channel] | None = None
    describe: Callable[[Any], str] | None = None
    kind: Callable[["Family", Mapping[str, Any]], Mechanism] | None = None
    check: Callable[..., object] | None = None
    read: Callable[[Mapping[str, Any], tuple[Label, ...]], Mapping[str, Any]] | None = None
    stated: Callable[[MechanismOptions], dict[str, Any]] = lambda options: (
        options.stated() | options.stated_classes()
    )
    tolerance: float = 0.0
    remarks: tuple[str, ...] = ()
    best: "Callable[[tuple[Label, ...], FloatArray, float, Loss], FiniteMechanism] | None" = None
    designs: Mapping[str, Callable[[Problem], Proposal]] = field(default_factory=dict)

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Build a mechanism from its parameters in order, or by the names of their fields."""
        names = {p.field or p.name: p.name for p in self.parameters}
        stated = dict(zip(names.values(), values, strict=False))
        stated |= {names.get(key, key): value for key, value in named.items()}
        return self._made(fields_of(self.parameters, stated, (), self.traits.name))

    def _made(self, values: dict[str, Any]) -> Mechanism:
        if self.check is not None:
            self.check(**values)
        return (self.kind or FiniteMechanism)(self, values)

    def from_parameters(
        self, parameters: Mapping[str, Any], classes: tuple[Label, ...]
    ) -> Mechanism:
        """Build a mechanism from the ``parameters`` of a declaration.

        ``classes`` are its labels where it states none. InputError where a parameter is missing,
        unknown or out of range.
        """
        stated = parameters if self.read is None else self.read(parameters, classes)
        return self._made(fields_of(self.parameters, stated, classes, self.traits.name))

    def from_epsilon(self, classes: Sequence[Label], epsilon: float) -> Mechanism:
        """Build the one on the labels ``classes`` at ``epsilon`` nats, which says it all."""
        return self.from_parameters({"classes": list(classes), "epsilon": epsilon}, ())

    def from_prior(
        self,
        classes: Sequence[Label],
        prior: Sequence[float] | FloatArray,
        epsilon: float,
        loss: Loss = "squared",
    ) -> "FiniteMechanism":
        """Build the one of least expected ``loss`` for the labels ``classes`` at ``epsilon`` nats.

        The ``prior``, of shape (k,), must come from other data than the labels to be released, or
        have a privacy budget of its own.
        """
        assert self.best is not None
        return self.best(tuple(classes), np.asarray(prior), epsilon, loss)

    def from_options(self, options: MechanismOptions) -> Mechanism:
        """Build a mechanism from the ``options`` of a command."""
        if self.best is not None:
            return self.from_prior(*options.for_prior(self.traits.name), options.loss)
        return self.from_parameters(self.stated(options), options.classes or ())

    def applied_range(self, labels: LabelRange) -> LabelRange:
        """Return the range of ``labels`` to use for a table; the step is 1 where none is stated."""
        return labels if labels.step is not None else LabelRange(labels.low, labels.high, 1.0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.traits.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _registered, (self.traits.name,)


def _registered(name: str) -> Any:
    """Return the family of that name: a pickled row is only its name."""
    return resolve_name("ldpaudit.mechanisms.registry:family")(name)


class Made(Mechanism):
    """A mechanism of a family in the table: its parameters, checked, which are attributes, too."""

    family: Family

    def __init__(self, family: Family, parameters: Mapping[str, Any]) -> None:
        self.__dict__.update(family=family, parameters=parameters, traits=family.traits)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"A mechanism does not change; got another {name!r}.")

    def __getstate__(self) -> dict[str, Any]:
        # Without what was computed from them.
        return {key: self.__dict__[key] for key in ("family", "parameters", "traits")}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.description!r})"

    def __getattr__(self, name: str) -> Any:
        known = self.__dict__.get("parameters", {})
        if name not in known:
            raise AttributeError(f"{self.__class__.__name__!r} object has no attribute {name!r}")
        return known[name]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Made) or self.family is not other.family:
            return False
        return self.declaration() == other.declaration()

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def description(self) -> str:
        assert self.family.describe is not None
        return self.family.describe(self)

    def remarks(self) -> tuple[str, ...]:
        return self.family.remarks

    @property
    def declared(self) -> tuple[Parameter, ...]:  # type: ignore[override]
        return self.family.parameters


class FiniteMechanism(Made, NumericMechanism):
    """A label mechanism that is its channel T[y, z] = P(released z | true y).

    Labels and outputs may be of any type; the methods that need numbers (``bias``, ``variance``,
    ``expected_loss``) raise an :class:`~ldpaudit.errors.InputError` where they are not numbers.

    Parameters
    ----------
    family : Family
        What builds it; called with parameters, it makes such mechanisms.
    parameters : mapping
        Its checked parameters by the names of their fields; they are attributes, too.
    """

    @cached_property
    def channel(self) -> Channel:
        assert self.family.channel is not None
        return self.family.channel(**self.parameters)

    @property
    def error_tolerance(self) -> float:
        return self.family.tolerance

    def worst_rows(self) -> Sequence[int] | None:
        """Return labels that include the worst pairs, by symmetry; None: all labels."""
        return None

    @property
    def epsilon(self) -> float:
        """The exact ε of the channel in nats; ∞ where an output excludes a label."""
        return self.channel.epsilon

    @cached_property
    def compared(self) -> Channel:
        """A channel with the same privacy: the distinct or the worst rows, at least two."""
        worst, matrix = self.worst_rows(), self.channel.matrix
        matrix = np.unique(matrix, axis=0) if worst is None else matrix[list(worst)]
        if len(matrix) == 1:
            matrix = np.repeat(matrix, 2, axis=0)
        return Channel(matrix, tuple(range(len(matrix))), tuple(range(matrix.shape[1])))

    @cached_property
    def weights(self) -> WeightTable:
        """The channel as integers, each entry within 2⁻⁶⁰, from which :meth:`sample` draws."""
        return WeightTable.from_probabilities(self.channel.matrix)

    def sample(self, labels: IntArray, rng: Randomness = None) -> IntArray:
        """Release ``labels`` given as codes, int32 of shape (n,), as codes of the outputs.

        ``rng`` is a numpy.random.Generator, for simulations, or a BitSource; default: the operating
        system's randomness. InputError where a code is no label's.
        """
        return self.weights.draw(check_codes(labels, len(self.channel.classes)), rng)

    def release(self, labels: npt.ArrayLike, rng: Randomness = None) -> npt.NDArray[Any]:
        """Release ``labels`` given as values, of shape (n,), as values; ``rng`` as in sample."""
        codes = codes_of(labels, self.channel.classes)
        return as_array(self.channel.outputs)[self.sample(codes, rng)]

    @cached_property
    def label_values(self) -> FloatArray:
        return np.asarray(check_numeric_classes(self.channel.classes), dtype=np.float64)

    @cached_property
    def output_values(self) -> FloatArray:
        if any(isinstance(z, bool | str) for z in self.channel.outputs):
            raise InputError("The outputs of this mechanism are not numbers.")
        return np.asarray(self.channel.outputs, dtype=np.float64)

    @property
    def label_bounds(self) -> tuple[float, float]:
        return float(self.label_values[0]), float(self.label_values[-1])

    def _rows(self, labels: FloatArray | None) -> slice | IndexArray:
        return slice(None) if labels is None else nearest(self.label_values, labels)

    def bias(self, labels: FloatArray | None = None) -> FloatArray:
        # Deviations first, so that large labels do not cancel.
        deviation = self.output_values[None, :] - self.label_values[:, None]
        return np.asarray((self.channel.matrix * deviation).sum(axis=1)[self._rows(labels)])

    def variance(self, labels: FloatArray | None = None) -> FloatArray:
        deviation = self.output_values[None, :] - self.label_values[:, None]
        centred = deviation - self.bias()[:, None]
        return np.asarray((self.channel.matrix * centred**2).sum(axis=1)[self._rows(labels)])

    def binned(self, edges: Sequence[float], labels: FloatArray | None = None) -> Channel:
        codes = np.searchsorted(np.asarray(edges), self.output_values, side="left")
        rows = self._rows(labels)
        matrix = (self.channel.matrix @ np.eye(len(edges) + 1)[codes])[rows]
        classes = tuple(self.label_values[rows].tolist())
        return Channel(matrix, classes, tuple(range(len(edges) + 1)))

    def likelihood(self, released: FloatArray, labels: FloatArray) -> FloatArray:
        order = np.argsort(self.output_values, kind="stable")
        columns = order[nearest(self.output_values[order], released)]
        rows = nearest(self.label_values, labels)
        return np.asarray(self.channel.matrix[np.ix_(rows, columns)].T)

    def expected_loss(self, prior: Sequence[float] | FloatArray, name: Loss = "squared") -> float:
        weights = check_prior(prior, len(self.channel.classes))[:, None] * self.channel.matrix
        losses = loss(name, self.output_values[None, :], self.label_values[:, None])
        # An infinite loss of an impossible pair counts as 0.
        return float(np.where(weights > 0, weights * np.where(weights > 0, losses, 0), 0).sum())

    def accuracy(self, prior: Sequence[float] | FloatArray) -> float | None:
        weights = check_prior(prior, len(self.channel.classes))
        position = {output: z for z, output in enumerate(self.channel.outputs)}
        true = [(y, position[c]) for y, c in enumerate(self.channel.classes) if c in position]
        return float(sum(weights[y] * self.channel.matrix[y, z] for y, z in true)) if true else None


def noise_on(outputs: int, epsilon: float) -> float:
    """Return λ = d/(d − 1 + e^ε) of randomized response on d outputs at ε in nats."""
    return outputs / (outputs + math.expm1(epsilon))


def as_array(labels: tuple[Label, ...]) -> npt.NDArray[Any]:
    """Return label values as an array, of objects if words and numbers are mixed."""
    mixed = len({isinstance(label, str) for label in labels}) > 1
    return np.array(labels, dtype=object if mixed else None)


def check_codes(codes: IntArray, k: int) -> IntArray:
    """Return label codes; each must lie in 0 … k − 1."""
    codes = np.asarray(codes)
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise InputError("Label codes must be a one-dimensional array of integers.")
    outside = int(np.count_nonzero((codes < 0) | (codes >= k)))
    if outside:
        raise InputError(f"The labels must lie in the declared range; rows outside: {outside:,}.")
    return codes.astype(np.int32, copy=False)


def codes_of(labels: npt.ArrayLike, classes: tuple[Label, ...]) -> IntArray:
    """Return the positions of label values in ``classes``, int32 of shape (n,)."""
    values = np.asarray(labels)
    if values.dtype.kind == "O":
        order: dict[Any, int] = {}
        inverse = np.array([order.setdefault(v, len(order)) for v in values.tolist()], np.intp)
        distinct = list(order)
    else:
        found, inverse = np.unique(values, return_inverse=True)
        distinct, inverse = found.tolist(), inverse.reshape(-1)
    position = {label: code for code, label in enumerate(classes)}
    table = np.array([position.get(value, -1) for value in distinct], dtype=np.int32)
    codes = table[inverse] if len(table) else np.empty(0, dtype=np.int32)
    outside = int(np.count_nonzero(codes < 0))
    if outside:
        raise InputError(f"The labels must be among the declared ones; other rows: {outside:,}.")
    return codes
