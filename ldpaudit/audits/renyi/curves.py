"""Rényi curves of an audit as results: each line with its kind."""

import math
from collections.abc import Callable, Mapping, Sequence

from ldpaudit.audits.mechanism.evidence import INDEPENDENT
from ldpaudit.estimators.renyi.divergence import RenyiBound
from ldpaudit.estimators.renyi.points import RenyiPoint, largest_order
from ldpaudit.result import Curve, Estimate

AUDIT_ID = "renyi"
X_LABEL = "order α"
CALIBRATED = (
    "the model's log-odds are the true ones where the second label has few rows; a worse model "
    "makes the estimate too small"
)
_CERTIFICATE = "Birrell et al. (2021), Theorem 3.1; Nguyen, Wainwright & Jordan (2010), Lemma 1"
DELTA = 1e-5
"""The δ at which curves are converted to (ε, δ)."""
LEAST_TOP_ORDER = 3.0
"""A curve that ends below this order says nothing useful of (ε, δ) or of attacks."""


def certified_curve(
    identifier: str,
    title: str,
    bounds: Sequence[RenyiBound],
    confidence: float,
    method: str,
    n: int,
) -> Curve:
    """Return the lower bounds over their orders, each at its own level."""
    values = tuple(bound.at(1 - confidence) for bound in bounds)
    return Curve(
        id=identifier,
        title=title,
        kind="certified",
        axis="divergence",
        x=tuple(bound.order for bound in bounds),
        value=values,
        low=values,
        side="lower",
        level=confidence,
        x_label=X_LABEL,
        unit="nats",
        n=n,
        method=f"{method}; each order at its own level",
        assumptions=(INDEPENDENT,),
        reference=_CERTIFICATE,
    )


def estimated_curve(
    identifier: str,
    title: str,
    points: Sequence[RenyiPoint],
    method: str,
    n: int,
    given: tuple[str, ...] = (),
) -> Curve | None:
    """Return the estimates at the orders that the rows support, None where there are none.

    ``given`` are assumptions beyond those of every estimate.
    """
    held = [point for point in points if point.supported]
    if not held:
        return None
    values = [point.value for point in held]
    for i in range(1, len(values)):
        # D_α never falls as α grows.
        values[i] = max(values[i], values[i - 1])
    return Curve(
        id=identifier,
        title=title,
        kind="estimated",
        axis="divergence",
        x=tuple(point.order for point in held),
        value=tuple(values),
        x_label=X_LABEL,
        unit="nats",
        n=n,
        method=method,
        assumptions=(CALIBRATED, INDEPENDENT, *given),
        reference="Birrell et al. (2021), Theorem 3.1",
    )


def bound_functions(
    identifier: str, bounds: Sequence[RenyiBound]
) -> Mapping[str, Callable[[float], float]]:
    """Return the bounds as functions of the error probability, by id and order."""
    return {bound_key(identifier, bound.order): bound.at for bound in bounds}


def bound_key(identifier: str, order: float) -> str:
    """Return under which key a curve's bound at one order is kept."""
    return f"{identifier}@{order:g}"


def support_estimates(
    identifier: str,
    names: tuple[str, str],
    points: Sequence[RenyiPoint],
    calibration: float | None,
    n: int,
) -> list[Estimate]:
    """Return how far the rows support estimates, and how well the model is calibrated.

    ``names`` say what the model is, and which rows they are.
    """
    top = largest_order(points)
    words = (
        "the largest order at which the exponential weights of the rows are worth at least 30 rows"
    )
    found = []
    if calibration is not None:
        found.append(
            Estimate.estimated(
                f"{identifier}.calibration_error",
                f"Calibration error of the {names[0]}",
                calibration,
                unit="proportion",
                n=n,
                method="mean distance between the model's probability and the share of rows, over "
                "20 quantile bins; the largest of the pairs compared",
                assumptions=(INDEPENDENT,),
            )
        )
    found += [
        Estimate.estimated(
            f"{identifier}.effective_rows.order_2",
            f"Effective rows at order 2, {names[1]}",
            math.floor(point.effective_rows),
            unit="rows",
            method="(Σ w)²/Σ w² of the weights w = e^{αφ} at order 2, the fewer of what either "
            "label's rows say",
            assumptions=(CALIBRATED,),
            reference="Kong (1992)",
        )
        for point in points
        if point.order == 2.0
    ]
    if top is not None:
        found.append(
            Estimate.estimated(
                f"{identifier}.largest_order",
                f"Largest order that the rows support, {names[1]}",
                top,
                n=n,
                method=words,
                assumptions=(CALIBRATED,),
            )
        )
    return found


def dp_epsilon(orders: Sequence[float], values: Sequence[float], delta: float = DELTA) -> float:
    """Return the ε of (ε, δ)-DP that a Rényi curve implies, the least over its orders, in nats.

    ε = ε_α + log((α − 1)/α) − (log δ + log α)/(α − 1), never below 0.

    References
    ----------
    Canonne, Kamath & Steinke (2020), The discrete Gaussian for differential privacy, Prop. 12.
    """
    found = [
        value + math.log((order - 1) / order) - (math.log(delta) + math.log(order)) / (order - 1)
        for order, value in zip(orders, values, strict=True)
    ]
    return max(0.0, min(found, default=math.inf))


def at_or_above(curve: Curve, order: float) -> float:
    """Return the value at the first order at or above ``order``, ∞ beyond the curve.

    D_α grows with α, so that is an upper estimate of D at ``order``.
    """
    return next(
        (v for x, v in zip(curve.x, curve.value, strict=True) if x >= order - 1e-9), math.inf
    )
