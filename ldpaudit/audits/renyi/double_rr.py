"""What a Rényi divergence of synthetic features implies for double randomized response."""

import math

from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.renyi.curves import X_LABEL, curve_consequences
from ldpaudit.estimators.renyi.divergence import ORDERS
from ldpaudit.mechanisms.capabilities import SyntheticFeatures
from ldpaudit.result import Curve, Finding

DOUBLE_RR = "renyi.double_rr_epsilon"
FLOOR = "renyi.double_rr_floor"
_REFERENCE = "Busa-Fekete et al. (2023), Theorem 7.1"
_PLUGGED_IN = "the estimated divergence of synthetic from true features is not too small"


def double_rr_finding(context: AuditContext, divergence: Curve | None, labelled: bool) -> Finding:
    """Return the curves of the claimed double randomized response; nothing for other claims.

    Without the estimated divergence Δ̂(α) only the floor is known. If ``labelled``, Δ̂ is between
    rows of one label (Theorem 7.1); else it is from a label's true rows to all synthetic ones.
    """
    claim = context.claim
    if not isinstance(claim, SyntheticFeatures) or claim.noise == 0:
        return Finding()
    floor = _floor(claim)
    if divergence is None:
        return Finding(curves=(floor,))
    curve = _curve(claim, divergence, labelled)
    words = "of double randomized response, estimated", "double RR, estimated"
    implied = curve_consequences(context, curve, "renyi.double_rr", "the curve with Δ̂", words)
    return Finding(estimates=implied, curves=(curve, floor))


def mixture_epsilon(alpha: float, divergence: float, noise: float, label_rdp: float) -> float:
    """Return ε of (α, ε, P)-label Rényi DP from the distance to the mixture of synthetic rows.

    With R the mixture of all labels' synthetic rows and Δ ≥ D_α(P_{X|y} ‖ R) for every y,

        ε = RDP of the label + log(1/λ) + α/(α − 1) · log((1 − λ) e^{(α−1)Δ/α} + λ).

    The released features of y have the law (1 − λ)P_y + λR, at least λR whatever the label, which
    gives log(1/λ) + D_α((1 − λ)P_y + λR ‖ R). With f = dP_y/dR the last is α/(α − 1) times the
    logarithm of the norm of (1 − λ)f + λ in L^α(R), by Minkowski's inequality at most
    (1 − λ)‖f‖ + λ, and ‖f‖ ≤ e^{(α−1)Δ/α}.

    Parameters
    ----------
    alpha : float
        The order, above 1.
    divergence : float
        Δ ≥ 0 in nats.
    noise : float
        λ in (0, 1].
    label_rdp : float
        The Rényi label-DP of the label's own randomized response at that order, in nats.
    """
    keep = 1 - noise
    power = (alpha - 1) / alpha
    # Divided by e^{(α−1)Δ/α}, so that large Δ do not overflow.
    inner = math.log(keep + noise * math.exp(-power * divergence))
    return label_rdp + math.log(1 / noise) + divergence + inner / power


def _curve(claim: SyntheticFeatures, divergence: Curve, labelled: bool) -> Curve:
    points = list(zip(divergence.x, divergence.value, strict=True))
    if labelled:
        # Busa-Fekete et al. (2023), Theorem 7.1.
        values = [claim.conditional_epsilon(delta) for _, delta in points]
        words, reference = "2 log(1 + k(1 − λ)/λ) + Δ̂(α)", _REFERENCE
    else:
        values = [mixture_epsilon(a, delta, claim.noise, claim.rdp(a)) for a, delta in points]
        words = (
            "the label's Rényi DP + log(1/λ) + α/(α − 1) · log((1 − λ)e^{(α−1)Δ̂/α} + λ), Δ̂ from "
            "a label's true features to all synthetic rows"
        )
        reference = f"Minkowski's inequality; after {_REFERENCE}"
    return Curve(
        id=DOUBLE_RR,
        title="Double randomized response, with the estimated divergence",
        kind="estimated",
        axis="divergence",
        x=divergence.x,
        value=tuple(values),
        x_label=X_LABEL,
        unit="nats",
        n=divergence.n,
        method=f"{words}, with Δ̂ estimated: an estimate, no guarantee",
        assumptions=("the claim holds", _PLUGGED_IN, *divergence.assumptions),
        reference=reference,
    )


def _floor(claim: SyntheticFeatures) -> Curve:
    return Curve(
        id=FLOOR,
        title="Floor: the label alone, dummy features",
        kind="exact",
        axis="divergence",
        x=ORDERS,
        value=tuple(claim.conditional_rdp_floor(alpha) for alpha in ORDERS),
        x_label=X_LABEL,
        unit="nats",
        method="the label alone, with dummy features, gives away at least this at the declared "
        "λ: no less is possible",
        reference="Busa-Fekete et al. (2023), Theorem 7.2",
    )
