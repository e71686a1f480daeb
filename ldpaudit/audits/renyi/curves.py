"""Rényi curves of an audit as results, each line with its kind."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.advantage import utility_bound
from ldpaudit.estimators.renyi import (
    RenyiBound,
    RenyiPoint,
)
from ldpaudit.result import Bound, Curve, Estimate
from ldpaudit.result.stated import INDEPENDENT

AUDIT_ID = "renyi"
X_LABEL = "order α"
MOST_LABELS = 8  # Labels that are compared singly: the most frequent ones.
_CALIBRATED = (
    "the model's log-odds are the true ones where the second label has few rows; a worse model "
    "makes the estimate too small"
)
_CERTIFICATE = "Birrell et al. (2021), Theorem 3.1; Nguyen, Wainwright & Jordan (2010), Lemma 1"
# The δ at which curves are converted to (ε, δ).
_DELTA = 1e-5
# A curve that ends below this order implies nothing useful about (ε, δ) or attacks.
_LEAST_TOP_ORDER = 3.0


@dataclass(frozen=True)
class Measured:
    """A divergence measured on held-out rows."""

    bounds: tuple[RenyiBound, ...]
    """One for each order."""
    points: tuple[RenyiPoint, ...]
    """An estimate for each order; empty where there are too few rows."""
    calibration: float | None
    """The largest calibration error of the models behind the estimates."""
    rows: int
    """Test rows."""


def largest_points(families: Sequence[Sequence[RenyiPoint]]) -> tuple[RenyiPoint, ...]:
    """Return for each order the largest estimate of several, held up by the weakest of them."""
    # A definition that speaks of every pair of labels is estimated by the largest divergence, and
    # only where no divergence is out of sight.
    return tuple(
        RenyiPoint(
            order=points[0].order,
            value=max(point.value for point in points),
            effective_rows=min(point.effective_rows for point in points),
            supported=all(point.supported for point in points),
        )
        for points in zip(*families, strict=True)
    )


def most_promising(families: Sequence[Sequence[RenyiBound]]) -> list[int]:
    """Return for each order which of several bounds tuning rows promise the most of."""
    promises = [[bound.critic.foreseen for bound in family] for family in families]
    return [int(place) for place in np.argmax(promises, axis=0)]


def certified_curve(
    identifier: str, title: str, measured: Measured, confidence: float, method: str
) -> Curve:
    """Return the lower bounds over their orders, each at its own level."""
    values = tuple(bound.at(1 - confidence) for bound in measured.bounds)
    return Curve(
        id=identifier,
        title=title,
        kind="certified",
        axis="divergence",
        x=tuple(bound.order for bound in measured.bounds),
        value=values,
        low=values,
        side="lower",
        level=confidence,
        x_label=X_LABEL,
        unit="nats",
        n=measured.rows,
        method=f"{method}; each order at its own level",
        assumptions=(INDEPENDENT,),
        reference=_CERTIFICATE,
    )


def estimated_curve(
    identifier: str, title: str, measured: Measured, method: str, given: tuple[str, ...] = ()
) -> Curve | None:
    """Return the estimates at the orders that the rows support, None where there are none.

    ``given`` are assumptions beyond those of every estimate.
    """
    supported = [point for point in measured.points if point.supported]
    if not supported:
        return None
    return Curve(
        id=f"{identifier}.estimate",
        title=f"{title}, by a model",
        kind="estimated",
        axis="divergence",
        x=tuple(point.order for point in supported),
        # D_α never falls as α grows.
        value=tuple(accumulate((point.value for point in supported), max)),
        x_label=X_LABEL,
        unit="nats",
        n=measured.rows,
        method=method,
        assumptions=(_CALIBRATED, INDEPENDENT, *given),
        reference="Birrell et al. (2021), Theorem 3.1",
    )


def bounds_of_orders(identifier: str, bounds: Sequence[RenyiBound]) -> Iterator[Bound]:
    """Yield the bound at each point of a curve, by id and order."""
    return (Bound(f"{identifier}@{bound.order:g}", bound.at) for bound in bounds)


def support_estimates(
    identifier: str, names: tuple[str, str], measured: Measured
) -> Iterator[Estimate]:
    """Yield how far the rows support estimates, and how well the model is calibrated.

    ``names`` say what the model is, and which rows they are.
    """
    if measured.calibration is not None:
        yield Estimate.estimated(
            f"{identifier}.calibration_error",
            f"Calibration error of the {names[0]}",
            measured.calibration,
            unit="proportion",
            n=measured.rows,
            method="mean distance between the model's probability and the share of rows, over 20 "
            "quantile bins; the largest of the pairs compared",
            assumptions=(INDEPENDENT,),
        )
    for point in measured.points:
        if point.order == 2.0:
            yield Estimate.estimated(
                f"{identifier}.effective_rows.order_2",
                f"Effective rows at order 2, {names[1]}",
                math.floor(point.effective_rows),
                unit="rows",
                method="(Σ w)²/Σ w² of the weights w = e^{αφ} at order 2, the smaller of the two "
                "labels' values",
                assumptions=(_CALIBRATED,),
                reference="Kong (1992)",
            )
    supported = [point.order for point in measured.points if point.supported]
    if supported:
        yield Estimate.estimated(
            f"{identifier}.largest_order",
            f"Largest order that the rows support, {names[1]}",
            max(supported),
            n=measured.rows,
            method="the largest order at which the exponential weights of the rows are worth at "
            "least 30 rows",
            assumptions=(_CALIBRATED,),
        )


def curve_consequences(
    context: AuditContext,
    curve: Curve,
    name: str,
    which: str,
    words: tuple[str, str],
    n: int | None = None,
) -> tuple[Estimate, ...]:
    """Return the (ε, δ) and the bound on attacks' accuracy that an estimated curve implies.

    Nothing where the curve ends early. ``words`` name the curve in the title of ε and in the
    title of the bound, ``which`` in the methods.
    """
    if curve.x[-1] < _LEAST_TOP_ORDER:
        return ()
    share = float(np.bincount(context.truth).max() / len(context.truth))
    k = max(len(context.release.classes), 2)
    return (
        Estimate.estimated(
            f"{name}.dp_at_delta",
            f"ε at δ = 10⁻⁵ {words[0]}",
            dp_epsilon(curve.x, curve.value),
            unit="nats",
            n=n,
            method=f"ε at δ = {_DELTA:g} that {which} implies, least over its orders",
            assumptions=curve.assumptions,
            reference="Canonne, Kamath & Steinke (2020), Proposition 12",
        ),
        Estimate.estimated(
            f"{name}.attack_bound",
            f"Bound on every attack’s accuracy, {words[1]}",
            utility_bound(lambda order: at_or_above(curve, order), share, k),
            unit="proportion",
            method=f"the accuracy that no attack exceeds if {which} is right, minimised over δ and "
            "α; the most frequent label's share as counted",
            assumptions=curve.assumptions,
            reference="Busa-Fekete et al. (2023), Theorem 5.2",
        ),
    )


def dp_epsilon(orders: Sequence[float], values: Sequence[float], delta: float = _DELTA) -> float:
    """Return the ε of (ε, δ)-DP that a Rényi curve implies, the least over its orders, in nats.

    ε = ε_α + log((α − 1)/α) − (log δ + log α)/(α − 1), never below 0.

    References
    ----------
    Canonne, Kamath & Steinke (2020), The discrete Gaussian for differential privacy, Prop. 12.
    """
    candidates = [
        value + math.log((order - 1) / order) - (math.log(delta) + math.log(order)) / (order - 1)
        for order, value in zip(orders, values, strict=True)
    ]
    return max(0.0, min(candidates, default=math.inf))


def at_or_above(curve: Curve, order: float) -> float:
    """Return the value at the first order at or above ``order``, ∞ beyond the curve.

    D_α grows with α, so that is an upper estimate of D at ``order``.
    """
    return next(
        (v for x, v in zip(curve.x, curve.value, strict=True) if x >= order - 1e-9), math.inf
    )
