"""Which lower bounds of ε are held against the claim, and each one's share of the error.

The one place for it: the audits that compute the bounds, the power audit and the check of the
claim all look here.
"""

from collections.abc import Collection, Mapping

from ldpaudit.audits.assumptions.stated import FEATURE_BLIND_TEST

EXCESS = "power.min_detectable_excess"
EXCESS_TITLE = "Smallest excess ε found with 90 % power"

INSIDER = "mechanism.epsilon_lower"
SUBGROUPS = "mechanism.subgroup_epsilon_lower"
SHARED_NOISE = "mechanism.shared_noise_epsilon_lower"
LATTICE = "mechanism.lattice_epsilon_lower"
OUTSIDER = "release_only.epsilon_lower"
OTHERS = ("observational.epsilon_lower", "aggregates.epsilon_lower")
"""Bounds where one released label depends on more than one true label; one in an audit."""

INSIDER_SHARES: Mapping[str, float] = {
    INSIDER: 0.8,
    SUBGROUPS: 0.1,
    # Half of it for the test of noise shared with another person's row.
    SHARED_NOISE: 0.05,
    FEATURE_BLIND_TEST: 0.05,
}
"""With true labels: bounds, and the test of whether the released label depends on the features."""
LATTICE_SHARE = 0.02
"""Of numbers, the share of the bound from remainders; that test has so much less."""


def shares(found: Collection[str]) -> dict[str, float]:
    """Return the share of each proof that an audit has; they sum to at most 1.

    With true labels the shares are fixed, whichever proofs there are, and the release-only bound
    has none: it is the one to lean on where there are no true labels.

    ``found``: ids of the audit's bounds and tests.
    """
    if not INSIDER_SHARES.keys().isdisjoint(found):
        parts = dict(INSIDER_SHARES)
        if LATTICE in found:
            parts[FEATURE_BLIND_TEST] -= LATTICE_SHARE
            parts[LATTICE] = LATTICE_SHARE
        return {name: part for name, part in parts.items() if name in found}
    alone = [name for name in (OUTSIDER, *OTHERS) if name in found]
    return dict.fromkeys(alone[:1], 1.0)
