"""Channels by stratum: rows with different values of a public column have their own mechanisms."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from ldpaudit.doors import (
    Channel,
    Family,
    FiniteMechanism,
    FloatArray,
    InputError,
    IntArray,
    Parameter,
    Traits,
    family,
)
from ldpaudit.mechanisms.capabilities import LabelByStratum
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.finite import Made, check_codes
from ldpaudit.mechanisms.parameters import check_list, only_known, required
from ldpaudit.release import Label


class Strata(Made, LabelByStratum):
    """A finite mechanism for each value of a public column."""

    # P(z | y, s) = T_s[y, z]. The stratum s is public and does not change when a label does, so
    # only rows of one stratum are ever compared: ε, δ(ε) and the Rényi divergences are exactly the
    # largest over the strata. Over all rows together there is no one channel.

    # None: each stratum has its own, see :attr:`by_stratum`.
    channel = None

    @cached_property
    def classes(self) -> tuple[Label, ...]:  # type: ignore[override]
        return self.mechanisms[0].channel.classes

    @cached_property
    def outputs(self) -> tuple[Label, ...]:  # type: ignore[override]
        return self.mechanisms[0].channel.outputs

    mechanisms: tuple[FiniteMechanism, ...]

    @cached_property
    def epsilon(self) -> float:
        return max(one.epsilon for one in self.mechanisms)

    @property
    def by_stratum(self) -> tuple[FiniteMechanism, ...]:
        return self.mechanisms

    def delta(self, epsilon: float) -> float:
        return max(one.delta(epsilon) for one in self.mechanisms)

    def rdp(self, alpha: float) -> float:
        return max(one.rdp(alpha) for one in self.mechanisms)

    @cached_property
    def matrices(self) -> FloatArray:  # type: ignore[override]
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
        return np.asarray(self.matrices[strata, :, released])

    def sample(self, labels: IntArray, strata: IntArray, rng: Randomness = None) -> IntArray:
        codes = check_codes(labels, len(self.classes))
        places = check_codes(strata, len(self.values))
        if len(codes) != len(places):
            raise InputError(f"There are {len(codes)} labels but {len(places)} strata.")
        out = np.empty_like(codes)
        for position, mechanism in enumerate(self.mechanisms):
            rows = np.flatnonzero(places == position)
            out[rows] = mechanism.sample(codes[rows], rng)
        return out

    def declaration(self) -> Mapping[str, Any]:
        strata = [
            {"value": value, "mechanism": {"name": one.name, **one.declaration()}}
            for value, one in zip(self.values, self.mechanisms, strict=True)
        ]
        return {"classes": list(self.classes), "outputs": list(self.outputs), "strata": strata}


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


def _read(parameters: Mapping[str, Any], classes: tuple[Label, ...]) -> Mapping[str, Any]:
    """Build the declared strata; stated classes and outputs must be theirs."""
    name = ByStratum.traits.name
    only_known(parameters, {"classes", "outputs", "strata"}, name)
    strata = required(parameters, "strata", name)
    if isinstance(strata, str) or not isinstance(strata, Sequence):
        raise InputError("The 'strata' must be a list of values with their mechanisms.")
    stated = check_list("classes", parameters.get("classes") or ())
    built = [_stratum(stratum, stated, classes) for stratum in strata]
    values, mechanisms = tuple(v for v, _ in built), tuple(one for _, one in built)
    _check(values, mechanisms)
    held = mechanisms[0].channel
    for key, own in (("classes", held.classes), ("outputs", held.outputs)):
        common = parameters.get(key)
        if common and check_list(key, common) != own:
            raise InputError(f"The stated '{key}' must be those of the strata, in their order.")
    return {"values": values, "mechanisms": mechanisms}


def _check(values: tuple[Label, ...], mechanisms: tuple[FiniteMechanism, ...]) -> None:
    if not values or len(values) != len(mechanisms):
        raise InputError("There must be at least one stratum, and a mechanism for each.")
    if len(set(values)) < len(values):
        raise InputError("The values of the strata must be distinct.")
    held = {(one.channel.classes, one.channel.outputs) for one in mechanisms}
    if len(held) > 1:
        raise InputError("The strata must have the same labels and outputs in the same order.")


ByStratum: Final = Family(
    traits=Traits(
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
    ),
    parameters=(Parameter("values"), Parameter("mechanisms")),
    describe=lambda m: (
        f"a channel for each of {len(m.values)} strata: ε from "
        f"{min(one.epsilon for one in m.mechanisms):.6g} to {m.epsilon:.6g} nats, the largest "
        "counts"
    ),
    kind=Strata,
    check=_check,
    read=_read,
    remarks=("ε, δ(ε) and the Rényi curve are the largest of any stratum; the strata are public.",),
)
"""A finite mechanism for each value of a public column: ``ByStratum(values, mechanisms)``, the
values, distinct, and a mechanism for each, all on the same labels and outputs in the same order."""
