"""Channels by stratum: rows with different values of a public column have their own mechanisms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.capabilities import LabelByStratum
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.finite import FiniteMechanism, check_codes
from ldpaudit.mechanisms.interface import Traits
from ldpaudit.mechanisms.parameters import check_classes, only_known, required
from ldpaudit.mechanisms.registry import family
from ldpaudit.release import FloatArray, IntArray, Label


@dataclass(frozen=True)
class ByStratum(LabelByStratum):
    """A finite mechanism for each value of a public column.

    P(z | y, s) = T_s[y, z]. The stratum s is public and does not change when a label does, so only
    rows of one stratum are ever compared: ε, δ(ε) and the Rényi divergences are exactly the largest
    over the strata. Over all rows together there is no one channel.

    Parameters
    ----------
    values : tuple, length s ≥ 1
        The values of the public column, distinct.
    mechanisms : tuple of FiniteMechanism, length s
        One for each, all on the same labels and outputs in the same order.
    """

    traits = Traits(
        name="by-stratum",
        title="a channel for each stratum",
        labels="classes",
        outputs="labels",
        label_depends_on_features=True,
        features="unchanged",
        rows="independent",
        options=(),
        stated_by=(),
        whole=False,
        needs=frozenset(),
    )

    values: tuple[Label, ...]
    mechanisms: tuple[FiniteMechanism, ...]

    def __post_init__(self) -> None:
        if not self.values or len(self.values) != len(self.mechanisms):
            raise InputError("There must be at least one stratum, and a mechanism for each.")
        if len(set(self.values)) < len(self.values):
            raise InputError("The values of the strata must be distinct.")
        first = self.mechanisms[0].channel
        for one in self.mechanisms[1:]:
            if (one.channel.classes, one.channel.outputs) != (first.classes, first.outputs):
                raise InputError(
                    "The strata must have the same labels and outputs in the same order."
                )

    @property
    def classes(self) -> tuple[Label, ...]:
        """The k labels, the same in every stratum."""
        return self.mechanisms[0].channel.classes

    @property
    def outputs(self) -> tuple[Label, ...]:
        """The m outputs, the same in every stratum."""
        return self.mechanisms[0].channel.outputs

    @property
    def description(self) -> str:
        """The number of strata and ε."""
        least = min(one.epsilon for one in self.mechanisms)
        return (
            f"a channel for each of {len(self.values)} strata: ε from {least:.6g} to "
            f"{self.epsilon:.6g} nats, the largest counts"
        )

    @cached_property
    def epsilon(self) -> float:
        """The largest ε of a stratum, in nats."""
        return max(one.epsilon for one in self.mechanisms)

    @property
    def channel(self) -> None:
        """None: each stratum has its own, see :attr:`by_stratum`."""
        return None

    @property
    def by_stratum(self) -> tuple[FiniteMechanism, ...]:
        """The strata's mechanisms."""
        return self.mechanisms

    def delta(self, epsilon: float) -> float:
        """Return the largest δ(ε) of a stratum, ε ≥ 0 in nats."""
        return max(one.delta(epsilon) for one in self.mechanisms)

    def rdp(self, alpha: float) -> float:
        """Return the largest Rényi label-DP parameter of a stratum at order α > 0, in nats."""
        return max(one.rdp(alpha) for one in self.mechanisms)

    def of_value(self, value: Label) -> FiniteMechanism:
        """Return the mechanism of one stratum, by its value."""
        return self.mechanisms[self.values.index(value)]

    @cached_property
    def matrices(self) -> FloatArray:
        """The strata's channels, float64 of shape (s, k, m)."""
        return np.stack([one.channel.matrix for one in self.mechanisms])

    def averaged(self, shares: Sequence[float] | FloatArray) -> Channel:
        """Return the channel P(z | y) of a row whose stratum is not looked at.

        ``shares``: of the strata, or (k, s) of the strata among the rows of each true label; with
        one row for all labels, stratum and label are taken as independent. Its ε is at most the
        mechanism's.
        """
        s, k = len(self.values), len(self.classes)
        weights = np.asarray(shares, dtype=np.float64)
        if weights.shape not in ((s,), (k, s)) or not np.isfinite(weights).all():
            raise InputError(f"There must be a share for each of {s} strata.")
        totals = weights.sum(axis=-1, keepdims=True)
        if (weights < 0).any() or not (totals > 0).all():
            raise InputError("The shares of the strata must not be negative, nor all be 0.")
        weights = np.broadcast_to(weights / totals, (k, s))
        return Channel(np.einsum("ks,skm->km", weights, self.matrices), self.classes, self.outputs)

    def row_likelihood(self, strata: IntArray, released: IntArray) -> FloatArray:
        """Return P(z | y, s), float64 of shape (n, k), as :meth:`LabelByStratum.row_likelihood`."""
        return np.asarray(self.matrices[strata, :, released])

    def sample(self, labels: IntArray, strata: IntArray, rng: Randomness = None) -> IntArray:
        """Release label codes of shape (n,) given each row's stratum, a position in ``values``."""
        codes = check_codes(labels, len(self.classes))
        places = check_codes(strata, len(self.values))
        if len(codes) != len(places):
            raise InputError(f"There are {len(codes)} labels but {len(places)} strata.")
        out = np.empty_like(codes)
        for position, mechanism in enumerate(self.mechanisms):
            rows = np.flatnonzero(places == position)
            out[rows] = mechanism.sample(codes[rows], rng)
        return out

    def remarks(self) -> tuple[str, ...]:
        """Say which stratum ε is for."""
        return (
            "ε, δ(ε) and the Rényi curve are the largest of any stratum; the strata are public.",
        )

    def declaration(self) -> Mapping[str, Any]:
        """Return classes, outputs and ``strata``: each value with its mechanism."""
        strata = [
            {"value": value, "mechanism": {"name": one.name, **one.declaration()}}
            for value, one in zip(self.values, self.mechanisms, strict=True)
        ]
        return {"classes": list(self.classes), "outputs": list(self.outputs), "strata": strata}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any], classes: tuple[Label, ...]) -> Self:
        """Build it from a declaration; strata that state no labels have the common ones."""
        only_known(parameters, {"classes", "outputs", "strata"}, cls.traits.name)
        strata = required(parameters, "strata", cls.traits.name)
        if isinstance(strata, str) or not isinstance(strata, Sequence):
            raise InputError("The 'strata' must be a list of values with their mechanisms.")
        stated = tuple(parameters.get("classes") or ())
        built = [_stratum(stratum, stated, classes) for stratum in strata]
        whole = cls(tuple(value for value, _ in built), tuple(one for _, one in built))
        _check_common(whole, parameters)
        return whole


def _check_common(whole: ByStratum, parameters: Mapping[str, Any]) -> None:
    for key, held in (("classes", whole.classes), ("outputs", whole.outputs)):
        stated = parameters.get(key)
        if stated and (check_classes(stated) if key == "classes" else tuple(stated)) != held:
            raise InputError(f"The stated '{key}' must be those of the strata, in their order.")


def _stratum(
    stated: Any, common: tuple[Label, ...], classes: tuple[Label, ...]
) -> tuple[Label, FiniteMechanism]:
    """Return the value and the mechanism of one declared stratum."""
    if not isinstance(stated, Mapping) or set(stated) != {"value", "mechanism"}:
        raise InputError("Each stratum must state its 'value' and its 'mechanism'.")
    value, mechanism = stated["value"], stated["mechanism"]
    if not isinstance(value, str | int | float):
        raise InputError("The value of a stratum must be a word or a number.")
    if not isinstance(mechanism, Mapping) or not isinstance(mechanism.get("name"), str):
        raise InputError("The mechanism of a stratum must state its 'name'.")
    rest = {key: held for key, held in mechanism.items() if key != "name"}
    kind = family(mechanism["name"])
    if "matrix" in kind.traits.needs and not (rest.get("classes") or common):
        raise InputError("A stratum's channel must name its classes, in the order of its rows.")
    built = kind.from_parameters(rest, common or classes)
    if not isinstance(built, FiniteMechanism):
        raise InputError(f"A stratum must have a finite channel; {built.name!r} has none.")
    return value, built
