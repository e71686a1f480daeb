"""What certified bounds assume, in the words that the code, the README and the report share."""

# And the ids of numbers that checks look at: which lower bounds of ε are held against the claim.
# The audits that compute the bounds, the power audit and the check of the claim all look here.

from collections.abc import Collection, Mapping
from typing import Final

from ldpaudit.error_budget import PROOFS, PROOFS_OF_NUMBERS

INDEPENDENT: Final = "rows were released independently of each other"
FEATURE_BLIND: Final = "the released label depends on the true label alone, not on the features"
UNSELECTED: Final = "no row was left out or repeated after the noise because of its released label"
NOT_DERIVED: Final = "no feature was computed from the released label"
FIRST_STAGE: Final = "rows are in the order of their release, those of the first stage first"
REFUTED: Final = " (refuted here)"
NOT_KNOWN: Final = " (not known here)"
NOT_INDEPENDENT: Final = INDEPENDENT + REFUTED

# P-values: the channel uses no feature; rows share no noise; not with another person's row.
FEATURE_BLIND_TEST: Final = "assumptions.feature_blind"
SHARED_NOISE_TEST: Final = "assumptions.shared_noise"
SHARED_WITH_OTHERS: Final = "assumptions.shared_with_others"
AGREEMENT_TEST: Final = "assumptions.agreement_along_the_file"
UNKNOWN_COLUMNS: Final = "assumptions.unknown_columns"
COMPOSED_EPSILON: Final = "assumptions.composed_epsilon"
RARE_CLASSES: Final = "mechanism.rare_classes"
# Of noise on features: bounds of its ε, at a point and under the curve; a p-value of its amount.
FEATURE_POINT: Final = "mechanism.feature_epsilon_lower"
FEATURE_ONE_RUN: Final = "mechanism.feature_one_run_epsilon_lower"
FEATURE_CURVE: Final = "mechanism.feature_curve_epsilon_lower"
FEATURES_KEPT: Final = "synthetic.kept_features"
# P-values: of features drawn independently of the row they stand for, and by a generator that saw
# none of the audited rows.
OWN_ROWS: Final = "synthetic.own_rows"
GENERATOR_BLIND: Final = "synthetic.generator_blind"
COPIED: Final = "synthetic.copied_share"
FEATURE_NOISE: Final = "mechanism.feature_noise"
# P-values: of values that are exactly the true ones; of noise that is not drawn as is claimed.
FEATURE_UNCHANGED: Final = "mechanism.feature_unchanged"
FEATURE_DRAWN: Final = "mechanism.feature_drawn"
COUNTED_ROWS: Final = "assumptions.counted_rows"
CHANGED_ROWS: Final = "assumptions.changed_rows"
SELECTED: Final = "assumptions.selected"

CHANNEL_CONSISTENCY: Final = "mechanism.channel_consistency"
MARGINAL_CONSISTENCY: Final = "mechanism.marginal_consistency"
SUMS_CONSISTENCY: Final = "aggregates.noise_as_declared"
DECLARED_EPSILON: Final = "mechanism.epsilon"
SEEDS: Final = "seeds.p_value"

# What could have been found: an excess that all rows share, rows in the clear; with how many rows.
EXCESS = "power.min_detectable_excess"
EXCESS_TITLE = "Smallest excess ε found with 90 % power"
CLEAR_SHARE: Final = "power.smallest_clear_share"
CLEAR_GROUP: Final = "power.smallest_clear_group"
ROWS_NEEDED: Final = "power.rows_needed"
# The same of a release without true labels, if they were given.
EXCESS_WITH_TRUTH: Final = "power.with_truth.min_detectable_excess"
ROWS_WITH_TRUTH: Final = "power.with_truth.rows_needed"

# Of columns: by which a person is recognised, and what they show of the labels.
INDICES: Final = "columns.indices"
IDENTIFIERS: Final = "columns.identifiers"
TEXTS: Final = "columns.texts"
DATES: Final = "columns.dates"
UNREAD: Final = "columns.unread"
OTHERWISE_WRITTEN: Final = "columns.label_written_otherwise"
WHOLE_REPORTS: Final = "columns.whole_reports"
TRUTH_INSIDE: Final = "columns.truth"
DECIDED: Final = "columns.decided"
DECIDING: Final = "columns.deciding"
LAGGED: Final = "columns.lagged"
READ_OFF: Final = "columns.read_off"
CLEAR_ROWS: Final = "columns.clear_rows"
ONE_LABEL: Final = "columns.one_label"
TOLD: Final = "columns.told"
POSITION: Final = "columns.position"
ORDERED: Final = "columns.ordered"
ROW_ORDER: Final = "columns.row_order"

# J(τ) and E[ν]; those in a learned metric have a name of their own.
EXCEEDANCE: Final = "instance_loss.exceedance"
EXCEEDANCE_LEARNED: Final = "instance_loss.exceedance_learned"
MEAN_LOSS: Final = "instance_loss.mean"
MEAN_LOSS_LEARNED: Final = "instance_loss.mean_learned"
MEAN_LOSS_LOWER: Final = "instance_loss.mean_lower"

RELEASE_CURVE: Final = "renyi.release"

INSIDER = "mechanism.epsilon_lower"
SUBGROUPS = "mechanism.subgroup_epsilon_lower"
SHARED_NOISE = "mechanism.shared_noise_epsilon_lower"
LATTICE = "mechanism.lattice_epsilon_lower"
OUTSIDER = "release_only.epsilon_lower"
# Of a person's answers: the bound, what it could have found, and the test of their noise.
PERSON_LOWER: Final = "person.epsilon_lower"
PERSON_EXCESS: Final = "person.min_detectable_excess"
PERSON_NOISE: Final = "person.independence"
# Bounds where one released label depends on more than one true label; one in an audit.
OTHERS = ("observational.epsilon_lower", "aggregates.epsilon_lower")

# With true labels: bounds, and the test of whether the released label depends on the features, by
# their names in the error budget.
_PROOFS: Final[Mapping[str, str]] = {
    INSIDER: "insider",
    SUBGROUPS: "subgroups",
    SHARED_NOISE: "shared noise",
    FEATURE_BLIND_TEST: "feature-blind",
}


def shares(found: Collection[str]) -> dict[str, float]:
    """Return the share of each proof that an audit has; they sum to at most 1.

    With true labels the shares are fixed, whichever proofs there are, and the release-only bound
    has none: it is the one to lean on where there are no true labels.
    ``found``: ids of the audit's bounds and tests.
    """
    if not _PROOFS.keys().isdisjoint(found):
        split = PROOFS_OF_NUMBERS if LATTICE in found else PROOFS
        proofs = {**_PROOFS, LATTICE: "lattice"}
        return {name: split[proof] for name, proof in proofs.items() if name in found}
    alone = [name for name in (OUTSIDER, *OTHERS) if name in found]
    return dict.fromkeys(alone[:1], 1.0)
