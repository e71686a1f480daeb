"""What a mechanism of another package states and answers, held against itself."""

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError, refuse
from ldpaudit.mechanisms.capabilities import LocalReports
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.interface import AnalysedMechanism, Mechanism
from ldpaudit.mechanisms.listing import BUILT_IN
from ldpaudit.release import FloatArray, IntArray, Label

# How far apart two ε may be by rounding, as a share of the larger one and in nats.
_ROUNDING: Final = 1e-6


def check_stated(mechanism: Mechanism) -> None:
    """Refuse a mechanism of another package whose ε is no number, or that of no channel of its own.

    Raises
    ------
    InputError
        If ``epsilon`` is no number of at least 0, ``compared`` has another ε, or ``channel`` or
        ``label_channel`` has a larger one.
    """
    part = _named(mechanism)
    epsilon: Any = mechanism.epsilon
    if epsilon is None and mechanism.offers(AnalysedMechanism) is None:
        return
    number = isinstance(epsilon, int | float | np.number) and not isinstance(epsilon, bool)
    refuse(not number or not epsilon >= 0, f"The ε of {part} must be a number of at least 0.")
    for name in ("channel", "compared", "label_channel"):
        own: Any = getattr(mechanism, name, None)
        if own is None:
            continue
        refuse(
            not isinstance(own, Channel),
            f"The {name} of {part} must be a Channel or None. Got {type(own).__name__} instead.",
        )
        same = _equal(own.epsilon, float(epsilon))
        if not same and (name == "compared" or own.epsilon > epsilon):
            raise InputError(
                f"{part[:1].upper()}{part[1:]} states ε = {epsilon:.6g}, and its {name} has ε = "
                f"{own.epsilon:.6g}; {'they must agree' if name == 'compared' else 'it has more'}."
            )


def _equal(one: float, other: float) -> bool:
    return one == other or math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)


def _named(mechanism: Mechanism) -> str:
    return f"the plug-in {mechanism.name!r} (mechanism)"


def checked_reports(mechanism: LocalReports) -> "LocalReports | CheckedReports":
    """Return a protocol of reports; what one of another package answers is checked."""
    return mechanism if mechanism.name in BUILT_IN else CheckedReports(mechanism)


class CheckedReports:
    """A protocol of another package: each answer must be what the door asks for (InputError)."""

    def __init__(self, protocol: LocalReports) -> None:
        self._protocol, self._part = protocol, _named(protocol)

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
