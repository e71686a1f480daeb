"""What attacks are compared with: the ceilings that the claim implies."""

import numpy as np

from ldpaudit.attacks.scoring.measures import ACCURACY, ADVANTAGE
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.label_inference.estimates import attack_score, score_id
from ldpaudit.estimators.intervals.binomial import clopper_pearson_upper
from ldpaudit.estimators.label_inference.advantage import (
    accuracy_ceiling,
    advantage_ceiling,
    utility_bound,
)
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import FloatArray
from ldpaudit.result import Estimate, Note

AUDIT_ID = "label-inference"
_CEILING = "Ceiling of the claim"
_ESTIMATED_CEILING = "Ceiling of the claim, estimated"
_UTILITY_BOUND = ("attack.utility_bound", "Bound on every attack’s accuracy")
_MODEL = "P(label | features) is as the cross-fitted model has it"


def ceiling_estimates(
    context: AuditContext,
    channel: Channel | None,
    posterior: FloatArray | None,
    best: float = 0.0,
) -> list[Estimate]:
    """Return the ceilings of accuracy and advantage under the claim.

    The channel is the claimed one, aligned with the release; ``posterior``, float64 of shape
    (n, k), is P(y | x) for each row, from the features alone; ``best`` is the strongest
    attack's accuracy.
    """
    epsilon = context.claim.epsilon
    if epsilon is None:
        return []
    estimates = [_advantage_ceiling(epsilon, len(context.release.classes))]
    if posterior is not None:
        estimates.append(_accuracy_ceiling(epsilon, posterior, best))
    if posterior is not None and channel is not None:
        estimates.append(_optimum(channel, posterior))
    return estimates


def _advantage_ceiling(epsilon: float, k: int) -> Estimate:
    score = attack_score("ceiling", _CEILING, ADVANTAGE)
    return Estimate.exact(
        score_id(score),
        score.title,
        advantage_ceiling(epsilon, k),
        score=score,
        unit="proportion",
        method="½ tanh(ε/2), over all priors" if k == 2 else "tanh(ε/4), over all priors",
        reference="tight form of the bound of Wu et al. (2023)",
    )


def _accuracy_ceiling(epsilon: float, posterior: FloatArray, best: float) -> Estimate:
    ceiling = accuracy_ceiling(posterior.max(axis=1), epsilon)
    score = attack_score("ceiling-estimate", _ESTIMATED_CEILING, ACCURACY)
    return Estimate.estimated(
        score_id(score),
        score.title,
        max(float(ceiling.mean()), best),
        score=score,
        unit="proportion",
        n=len(posterior),
        method="p e^ε/(1 + p(e^ε − 1)) with p the largest P(label | features), averaged over rows; "
        "the strongest attack's accuracy where that is higher",
        assumptions=(_MODEL, "the claim holds"),
        reference="Wu et al. (2023)",
    )


def _optimum(channel: Channel, posterior: FloatArray) -> Estimate:
    score = attack_score("optimum", "Optimum against the claim, estimated", ACCURACY)
    return Estimate.estimated(
        score_id(score),
        score.title,
        float(channel.informed_accuracy(posterior).mean()),
        score=score,
        unit="proportion",
        n=len(posterior),
        method="Σ_z max_y P(y | features) T[y, z], averaged over rows",
        assumptions=(_MODEL, "the claim holds"),
        reference="Busa-Fekete et al. (2024)",
    )


def utility_estimate(
    context: AuditContext, channel: Channel | None
) -> tuple[list[Estimate], list[Note]]:
    """Return the bound on every attack's accuracy that Rényi label privacy of the claim implies.

    The features leave a release unprotected, so with features that vary the bound is 1 and a note
    says why. Without any, the claimed channel is all there is, and the frequency of the most
    frequent label is bounded from above where true labels are known.
    """
    if channel is None:
        return [], []
    reference = "Busa-Fekete et al. (2023), Theorem 5.2"
    if not context.release.features.is_constant():
        bound = Estimate.exact(
            *_UTILITY_BOUND,
            1.0,
            unit="proportion",
            method="features are released unchanged, so the claim alone bounds no attack",
            reference=reference,
        )
        text = (
            "The claim protects the label given the features. It does not bound what the features "
            "themselves give away, so the bound on any attack's accuracy is 1."
        )
        return [bound], [Note.info(AUDIT_ID, text)]
    return _constant_features(context, channel, reference), []


def _constant_features(context: AuditContext, channel: Channel, reference: str) -> list[Estimate]:
    truth = context.release.truth
    if truth is None:
        return []
    alpha, k = 1 - context.plan.confidence, len(context.release.classes)
    counts = np.bincount(truth, minlength=k)
    # The largest of k frequencies: a bound for each at alpha/k.
    p_star = float(clopper_pearson_upper(counts, len(truth), alpha / k).max())
    return [
        Estimate.upper_bound(
            *_UTILITY_BOUND,
            utility_bound(channel.rdp, p_star, k),
            context.plan.confidence,
            unit="proportion",
            n=len(truth),
            method="no feature varies: Rényi divergence of the claimed channel, minimised over "
            "δ and α; the most frequent label's share bounded from above",
            assumptions=("the claim holds",),
            reference=reference,
        )
    ]
