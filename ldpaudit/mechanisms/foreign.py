"""What a mechanism of another package states and answers, held against itself."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import getattr_static
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError, LdpAuditError, refuse
from ldpaudit.mechanisms.capabilities import LocalReports
from ldpaudit.mechanisms.channel import ROW_SUM_TOLERANCE, Channel
from ldpaudit.mechanisms.finite import Family, FiniteMechanism
from ldpaudit.mechanisms.interface import AnalysedMechanism, Mechanism
from ldpaudit.mechanisms.listing import BUILT_IN
from ldpaudit.mechanisms.parameters import Parameter
from ldpaudit.plugins import watched
from ldpaudit.release import FloatArray, IntArray, Label

# How far apart two ε may be by rounding, as a share of the larger one and in nats.
_ROUNDING: Final = 1e-6
_OTHERWISE: Final = "run again with --debug for more"
# Where a mechanism has a channel, or none.
_CHANNELS: Final = ("channel", "compared", "label_channel")
# What a family has functions for.
_FUNCTIONS: Final = ("channel", "describe", "kind", "check", "read", "stated", "best")

Built = TypeVar("Built", bound=Mechanism)


def watched_family(found: Family) -> Family:
    """Return a family of another package: what it builds is checked as soon as it is built."""
    check_parameters(found.traits.name, found.parameters)
    _check_functions(found)
    kind, best = found.kind or FiniteMechanism, found.best

    def build(family: Family, values: Mapping[str, Any]) -> Mechanism:
        return checked(found.traits.name, lambda: kind(family, values))

    def build_best(*asked: Any) -> FiniteMechanism:
        assert best is not None
        made = best(*asked)
        return checked(found.traits.name, lambda: made)

    return replace(found, kind=build, best=None if best is None else build_best)


def check_parameters(name: str, stated: Any) -> None:
    """Refuse parameters of a mechanism that are not as the door has them (InputError)."""
    must = f"The parameters of {_part(name)} must be a tuple of ldpaudit.doors.Parameter."
    if not isinstance(stated, tuple):
        raise InputError(f"{must} Got {type(stated).__name__} instead.")
    others = [type(one).__name__ for one in stated if not isinstance(one, Parameter)]
    refuse(others, f"{must} Got {' and '.join(sorted({*others}))} in it.")
    for one in stated:
        refuse(
            not isinstance(one.name, str) or not isinstance(one.field, str),
            f"The name and the field of each parameter of {_part(name)} must be texts.",
        )
        refuse(
            one.check is not None and not callable(one.check),
            f"What checks the parameter {one.name!r} of {_part(name)} must be a function.",
        )


def _check_functions(found: Family) -> None:
    needed = {"stated", *(("channel", "describe") if found.kind is None else ())}
    for name in _FUNCTIONS:
        one: Any = getattr(found, name)
        refuse(
            not callable(one) and (one is not None or name in needed),
            f"The {name!r} of {_part(found.traits.name)} must be a function. Got "
            f"{type(one).__name__} instead.",
        )


def checked(name: str, build: Callable[[], Built]) -> Built:
    """Return what builds a mechanism of another package, held against itself and a second one.

    Raises
    ------
    LdpAuditError
        If it is no mechanism, states something else than what the door asks for, contradicts
        itself, or is not the same each time that it is built.
    """
    # What it raises on purpose is about the parameters, which are the user's.
    with watched("mechanism", name, _OTHERWISE, (LdpAuditError,)):
        made, again = build(), build()
    part = _part(name)
    refuse(
        not isinstance(made, Mechanism),
        f"What {part} builds must be a ldpaudit.doors.Mechanism. Got {type(made).__name__} "
        "instead.",
    )
    with watched("mechanism", name, _OTHERWISE):
        _check_channels(made, again, part)
        _check_epsilon(made, part)
        said: Any = made.description
        refuse(
            not isinstance(said, str) or not said.strip(),
            f"The description of {part} must be a text. Got {_got(said)} instead.",
        )
        remarks: Any = made.remarks()
        refuse(
            not isinstance(remarks, tuple) or not all(isinstance(one, str) for one in remarks),
            f"The remarks of {part} must be a tuple of texts. Got {_got(remarks)} instead.",
        )
    return made


def _check_channels(made: Mechanism, again: Mechanism, part: str) -> None:
    must = "a ldpaudit.doors.Channel"
    finite = isinstance(made, FiniteMechanism)
    for name in _CHANNELS:
        own, other = _held(made, name), _held(again, name)
        known = isinstance(own, Channel) or (own is None and not finite)
        refuse(
            not known,
            f"The {name} of {part} must be {must}{'' if finite else ' or None'}. Got {_got(own)} "
            "instead.",
        )
        refuse(
            not _same(own, other),
            f"The {name} of {part} is another one each time it is built; its parameters alone "
            "must decide it.",
        )
    if not isinstance(made.channel, Channel):
        return
    for name in ("classes", "outputs"):
        declared: Any = getattr(made, name, None)
        refuse(
            isinstance(declared, tuple) and declared != getattr(made.channel, name),
            f"The {name} of the channel of {part} must be those that were declared, in their "
            "order.",
        )
    released = made.traits.outputs
    others = len({*made.channel.outputs} - {*made.channel.classes})
    refuse(
        released == "labels" and others and not isinstance(getattr(made, "outputs", None), tuple),
        f"The channel of {part} releases {others} {'value' if others == 1 else 'values'} that "
        "nobody declared; list them in a parameter 'outputs', or release the classes alone.",
    )
    texts = [one for one in made.channel.outputs if isinstance(one, bool | str)]
    refuse(
        released == "numbers" and texts, f"The outputs of the channel of {part} must be numbers."
    )


def _held(made: Mechanism, name: str) -> Any:
    """Return what a mechanism has under a name; None where it has nothing of that name."""
    # An error inside a property is no lack of it.
    return None if getattr_static(made, name, None) is None else getattr(made, name)


def _same(one: Channel | None, other: Any) -> bool:
    if one is None or one is other:
        return one is other
    return (
        isinstance(other, Channel)
        and (one.classes, one.outputs) == (other.classes, other.outputs)
        and _equal(one.epsilon, other.epsilon)
        and np.allclose(one.matrix, other.matrix, rtol=_ROUNDING, atol=ROW_SUM_TOLERANCE)
    )


def _got(value: Any) -> str:
    return "an empty one" if isinstance(value, str) and not value.strip() else type(value).__name__


def _check_epsilon(mechanism: Mechanism, part: str) -> None:
    """Refuse an ε that is no number, or is not that of the channels."""
    epsilon: Any = mechanism.epsilon
    if epsilon is None and mechanism.offers(AnalysedMechanism) is None:
        return
    number = isinstance(epsilon, int | float | np.number) and not isinstance(epsilon, bool)
    refuse(not number or not epsilon >= 0, f"The ε of {part} must be a number of at least 0.")
    for name in _CHANNELS:
        own: Channel | None = _held(mechanism, name)
        if own is None:
            continue
        same = _equal(own.epsilon, float(epsilon))
        if not same and (name == "compared" or own.epsilon > epsilon):
            raise InputError(
                f"{part[:1].upper()}{part[1:]} states ε = {epsilon:.6g}, and its {name} has ε = "
                f"{own.epsilon:.6g}; {'they must agree' if name == 'compared' else 'it has more'}."
            )


def _equal(one: float, other: float) -> bool:
    return one == other or math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)


def _part(name: str) -> str:
    return f"the plug-in {name!r} (mechanism)"


def checked_reports(mechanism: LocalReports) -> "LocalReports | CheckedReports":
    """Return a protocol of reports; what one of another package answers is checked."""
    return mechanism if mechanism.name in BUILT_IN else CheckedReports(mechanism)


class CheckedReports:
    """A protocol of another package: each answer must be what the door asks for (InputError)."""

    def __init__(self, protocol: LocalReports) -> None:
        self._protocol, self._part = protocol, _part(protocol.name)

    @property
    def classes(self) -> tuple[Label, ...]:
        """The labels, k of them."""
        return self._protocol.classes

    @property
    def epsilon(self) -> float:
        """The declared protocol's exact ε of one report in nats."""
        return self._protocol.epsilon

    @property
    def report_kind(self) -> Any:
        """How a released column holds a report."""
        return self._protocol.report_kind

    def check(self, reports: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the reports, of shape (n, d), in the type that the other methods take."""
        return self._array("check", self._protocol.check(reports), reports.shape)

    def labels(self, reports: npt.NDArray[Any], rng: np.random.Generator) -> IntArray:
        """Return a most likely label of each report, int32 of shape (n,)."""
        codes = self._array("labels", self._protocol.labels(reports, rng), (len(reports),))
        whole = codes.dtype.kind in "iu"
        within = whole and (codes >= 0).all() and (codes < len(self.classes)).all()
        refuse(not within, f"What 'labels' of {self._part} returns must be positions of labels.")
        return codes.astype(np.int32, copy=False)

    def log_ratio(self, reports: npt.NDArray[Any], first: IntArray, second: IntArray) -> FloatArray:
        """Return log P(report | first)/P(report | second), float64 of shape (n,), in nats.

        Between −ε and ε, and turned around where the labels are exchanged: a bound of ε takes
        it for a guess between two labels, and would otherwise count guesses that are none.
        """
        asked = (first, second), (second, first)
        ratios, turned = (
            self._array("log_ratio", self._protocol.log_ratio(reports, *pair), (len(reports),))
            for pair in asked
        )
        slack = _ROUNDING * max(1.0, self.epsilon) if math.isfinite(self.epsilon) else 0.0
        loud = np.abs(ratios) > self.epsilon + slack
        for wrong, what in (
            (np.isnan(ratios), "is not a number"),
            (loud, f"exceeds its ε = {self.epsilon:.6g}"),
            (~np.isclose(ratios, -turned, atol=_ROUNDING), "does not turn with the two labels"),
        ):
            refuse(
                wrong.any(),
                f"The log_ratio of {self._part} {what} for {int(wrong.sum()):,} of "
                f"{len(ratios):,} reports.",
            )
        return np.asarray(ratios, dtype=np.float64)

    def _array(self, method: str, answer: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        right = isinstance(answer, np.ndarray) and answer.dtype.kind in "biuf"
        got = f"shape {answer.shape}" if right else type(answer).__name__
        refuse(
            not right or answer.shape != shape,
            f"What {method!r} of {self._part} returns must be an array of numbers of shape "
            f"{shape}. Got {got} instead.",
        )
        found: npt.NDArray[Any] = answer
        return found
