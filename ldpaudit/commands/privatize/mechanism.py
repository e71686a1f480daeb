"""From the options and the survey of the labels to the mechanism."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from ldpaudit.commands.privatize.checks import options_of
from ldpaudit.commands.privatize.labels.domains import GridDomain, RangeDomain, RoundedDomain
from ldpaudit.commands.privatize.labels.priors import Prior
from ldpaudit.commands.privatize.request import ColumnRequest
from ldpaudit.datasets.beside.channel_tables import ColumnChannels, column_channels
from ldpaudit.errors import InputError, quoted
from ldpaudit.mechanisms import MechanismOptions, family
from ldpaudit.mechanisms.capabilities import NoisyFeatures
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.numeric.rounded_labels import Rounding, RoundingMethod, with_rounding
from ldpaudit.mechanisms.parameters import check_classes, check_numeric_classes
from ldpaudit.release import Label

_SETTINGS: Final = {
    "clipped": "clipped",
    "floor": "floor",
    "radius": "radius",
    "sigma": "sigma",
    "feature_epsilon": "feature_epsilon",
    "delta": "feature_delta",
}
"""Options that are further parameters of a declaration, with their names there."""


@dataclass(frozen=True)
class DeclaredLabels:
    """What is known of the labels before any data is read.

    The ``range`` of numeric labels, or the ``classes``; neither where they are read from the data.
    """

    range: LabelRange | None
    classes: tuple[Label, ...] | None

    def numeric_domain(
        self, method: RoundingMethod | None, rng: Any
    ) -> GridDomain | RangeDomain | RoundedDomain | None:
        """Return the domain of labels that are a range of numbers, or rounded; else None."""
        if method is not None:
            points = self.classes if self.range is None else self.range.classes
            return RoundedDomain(Rounding(points or (), method), rng)
        if self.range is None:
            return None
        return RangeDomain(self.range) if self.range.step is None else GridDomain(self.range)


def declared_labels(request: ColumnRequest, of_prior: tuple[Label, ...] | None) -> DeclaredLabels:
    """Return the labels that the options state, else those of the prior's file (``of_prior``).

    Raises
    ------
    InputError
        If they are no range of numbers, or a numeric mechanism is given none.
    """
    mechanism = family(request.mechanism)
    traits = mechanism.traits
    if "matrix" in traits.needs:
        return DeclaredLabels(None, check_classes(_matrix(request)["classes"]))
    if request.labels is not None:
        labels = LabelRange.parse(request.labels)
        if request.round is not None and labels.step is None and "prior" in traits.needs:
            points = of_prior and _points_of_prior(labels, of_prior)
            if points:
                return DeclaredLabels(None, points)
        return DeclaredLabels(mechanism.applied_range(labels), None)
    if "range" in traits.needs:
        raise InputError(
            f"The mechanism {request.mechanism!r} must be given the labels' range with --labels "
            f"LO:HI[:STEP]; it is declared, never read from the data."
        )
    classes = request.classes if request.classes is not None else of_prior
    if classes is None:
        if traits.numeric:
            raise InputError(
                f"The mechanism {request.mechanism!r} must be given its labels with --labels "
                f"LO:HI:STEP or --classes; they are declared, never read from the data."
            )
        return DeclaredLabels(None, None)
    if request.classes is None and len(classes) < 2:
        raise InputError("The prior (--prior) must list every label: at least two. It lists one.")
    checked = check_numeric_classes(classes) if traits.numeric else check_classes(classes)
    return DeclaredLabels(None, checked)


def _points_of_prior(labels: LabelRange, of_prior: tuple[Label, ...]) -> tuple[Label, ...]:
    """Return the labels of the prior's file in order: what numbers in the range are rounded to."""
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in of_prior)
    points = check_numeric_classes(sorted(of_prior, key=float) if numeric else of_prior)
    if (float(points[0]), float(points[-1])) != (labels.low, labels.high):
        raise InputError(
            "The labels of --prior are what numbers are rounded to: its lowest and highest must be "
            "the bounds of --labels."
        )
    return points


def build(
    request: ColumnRequest,
    labels: DeclaredLabels,
    classes: tuple[Label, ...],
    prior: Callable[[tuple[Label, ...]], Prior],
) -> Mechanism:
    """Return the mechanism.

    Parameters
    ----------
    request : ColumnRequest
    labels : DeclaredLabels
    classes : tuple
        The k labels; empty for a range of real numbers.
    prior : callable
        Gives the prior of these labels; called where a design needs one.

    Raises
    ------
    InputError
        If a parameter is out of range, or ε would be infinite.
    """
    options = MechanismOptions(
        epsilon=request.epsilon,
        noise=request.noise,
        classes=classes or None,
        labels=labels.range,
        loss=request.loss or "squared",
        settings=_settings(request),
    )
    mechanism = family(request.mechanism)
    if "prior" in mechanism.traits.needs:
        options = _with_prior(options, prior(classes))
    try:
        built = mechanism.from_options(options)
    except InputError as error:
        raise InputError(_with_options(str(error))) from None
    check_hides(built)
    if isinstance(built, NoisyFeatures) and not built.claim_holds():
        raise InputError(
            "--sigma is too small for --feature-epsilon and --delta; give a larger one."
        )
    return with_rounding(built, request.round)


def check_hides(mechanism: Mechanism) -> None:
    """Refuse a mechanism whose ε is infinite (InputError)."""
    if mechanism.epsilon is None or not math.isfinite(mechanism.epsilon):
        raise InputError(
            "With these parameters epsilon is infinite: some true label would be given away for "
            "certain; give a larger lambda or floor, or a channel without zeros."
        )


def _with_options(message: str) -> str:
    """Return a message that names parameters with the options that state them instead."""
    for option, name in _SETTINGS.items():
        message = message.replace(f"'{name}'", f"--{option.replace('_', '-')}")
    return message


def _with_prior(options: MechanismOptions, prior: Prior) -> MechanismOptions:
    """Return the options with the prior, and the ε that it leaves."""
    assert options.epsilon is not None
    left = options.epsilon - prior.epsilon
    return replace(options, prior=prior.probabilities, epsilon=left)


def _settings(request: ColumnRequest) -> dict[str, Any]:
    takes = options_of(request.mechanism)
    if "channel" in takes:
        stated = _matrix(request)
        return {key: stated[key] for key in ("outputs", "matrix")}
    stated = {
        name: getattr(request, option) for option, name in _SETTINGS.items() if option in takes
    }
    return {name: value for name, value in stated.items() if value is not None}


def _matrix(request: ColumnRequest) -> dict[str, Any]:
    """Return a channel as a declaration states it, its labels as values; of strata the first."""
    stated = channels_of(request).mechanism()
    return next(iter(stated["strata"]))["mechanism"] if "strata" in stated else stated


def channels_of(request: ColumnRequest) -> ColumnChannels:
    """Return the channel of a column, or those of its strata, as its table states them.

    Raises
    ------
    InputError
        If there is no table, or none of its channels is the column's.
    """
    if request.channel is None:
        raise InputError(
            f"The mechanism {request.mechanism!r} must be given its matrix with --channel FILE."
        )
    # Strata of a plan have a table each.
    by = None if request.strata else request.by
    tables = column_channels(request.channel, by, request)
    found = [one for one in tables if one.variable in (None, request.label)]
    if not found:
        raise InputError(
            f"The table of channels has none for the column {quoted(request.label)}; it has those "
            f"of {len(tables)} other column(s)."
        )
    if found[0].by is not None and by is None:
        raise InputError(
            "The table has a channel for each value of one of its columns; name it: by=COLUMN."
        )
    return found[0]
