"""The audits of rare kinds: when each applies. What they compute is imported when they run."""

from collections.abc import Iterable
from typing import Final

from ldpaudit.audits.interface import BuiltIn, Dependence, Part
from ldpaudit.doors import AuditContext, BagSums, NoisyFeatures, PublicModelLabel


def _observational(context: AuditContext) -> Iterable[Part]:
    from ldpaudit.extras.kinds.observational.audit import observational_parts

    return observational_parts(context)


def _power_of_observational(context: AuditContext) -> Iterable[Part] | None:
    if context.claim.offers(PublicModelLabel) is None:
        return None
    from ldpaudit.extras.kinds.observational.evidence import observational_power

    return observational_power(context)


OBSERVATIONAL: Final = BuiltIn(
    "observational",
    _observational,
    needs=("truth", "labels", "rows"),
    power=_power_of_observational,
)


def _no_bags(context: AuditContext) -> str | None:
    apart = context.release.bags is None or context.claim.offers(BagSums) is None
    return "the release is not one of aggregates of labels" if apart else None


def _aggregates(context: AuditContext) -> Iterable[Part]:
    from ldpaudit.extras.kinds.bags.audit import aggregates_parts

    return aggregates_parts(context)


def _dependence_of_bags(context: AuditContext) -> Dependence | None:
    from ldpaudit.extras.kinds.bags.audit import bags_dependence

    return None if context.release.bags is None else bags_dependence(context)


AGGREGATES: Final = BuiltIn(
    "aggregates",
    _aggregates,
    _no_bags,
    needs=("labels",),
    dependence=_dependence_of_bags,
)


def _no_replaced_rows(context: AuditContext) -> str | None:
    release, claim = context.release, context.claim
    if release.features.width == 0:
        return "the release has no features"
    if release.original is None:
        return "synthetic rows can be recognised only with the original features (--original)"
    if not claim.traits.features_replaced:
        return f"the claimed mechanism {claim.name} replaces no features"
    constant = release.original.is_constant()
    return "the original features do not distinguish the rows" if constant else None


def _synthetic(context: AuditContext) -> Iterable[Part]:
    from ldpaudit.extras.kinds.synthetic.audit import synthetic_parts

    return synthetic_parts(context)


SYNTHETIC: Final = BuiltIn("synthetic", _synthetic, _no_replaced_rows)


def _no_noise(context: AuditContext) -> str | None:
    noisy = context.claim.offers(NoisyFeatures) is not None
    return None if noisy else "the claimed mechanism adds no noise to features"


def _noisy_features(context: AuditContext) -> Iterable[Part]:
    from ldpaudit.extras.kinds.noisy_features.audit import feature_parts

    return feature_parts(context)


NOISY_FEATURES: Final = BuiltIn("noisy-features", _noisy_features, _no_noise, within="mechanism")
