"""What each id of a result stands for: a promise to other programs."""

# A part in angle brackets stands for any name of its kind, see :data:`PLACEHOLDERS`.

import re
from typing import Final

PLACEHOLDERS: Final = {
    "attack": "an attack, built in or of another package; `best` is the strongest, its level "
    "corrected for the choice; `prior` and `features-only` know nothing of the release",
    "measure": "`accuracy`, `advantage` (accuracy beyond `features-only`), `auc`, "
    "`balanced_accuracy`, `calibration_error`, `multiplicative_advantage`, `tpr_at_fpr_1pct`",
    "guess": "a way to guess a number; `best` is the strongest, `prior` and `features-only` know "
    "nothing of the release",
    "error": "`mse`, `mse_gain` (beyond other people's labels), `exact`, `within_1`, `within_5`, "
    "`within_10` (percent of the range), `bin_accuracy`, `bin_advantage`",
    "group": "`class-2`, or `slice-1-3`: the third slice of the first column of `--slice`",
    "class": "`class-2`, in the order of the declared labels",
    "method": "how it was computed",
    "percent": "`50`, `90` or `99`",
    "rate": "`attack` (of audited people), `control` (of held-out people), `naive` (without what "
    "synthetic rows say together), `risk` (attack beyond control, of what control leaves)",
}
"""What stands for what, in the ids below."""

ESTIMATES: Final = {
    "release.replayed": "The share of released labels that are what the committed key draws.",
    "release.changed_labels": "How many are not: changed after the noise.",
    "release.rows_left_out": "Rows that were drawn and are not in the release.",
    "mechanism.epsilon": "ε of the declared mechanism.",
    "mechanism.lambda": "λ of the declared mechanism.",
    "mechanism.keep_probability": "How often the declared mechanism keeps the true label.",
    "mechanism.binary_flip": "How often it flips one of two labels: λ/2.",
    "mechanism.epsilon_of_others": "ε among the labels that are not released as they are.",
    "mechanism.total_variation": "Its δ at ε = 0.",
    "mechanism.max_bias": "The bias of released numbers, for the worst label.",
    "mechanism.max_mean_squared_error": "The mean squared error of released numbers, at worst.",
    "mechanism.feature_epsilon": "ε of the declared noise on the features.",
    "mechanism.feature_epsilon_lower": "A lower bound of it from true and released features.",
    "mechanism.feature_one_run_epsilon_lower": "The same if the noise is Gaussian, of one run of "
    "all rows together.",
    "mechanism.feature_curve_epsilon_lower": "The same if the noise is Gaussian, and drawn for "
    "each row by itself.",
    "mechanism.feature_noise": "Whether the features have less noise than declared (p-value).",
    "mechanism.feature_unchanged": "Whether more feature values are exactly the true ones "
    "than noise leaves so (p-value).",
    "mechanism.feature_drawn": "Whether the noise on the features can be Gaussian and drawn for "
    "each row by itself, of the label independent (p-value).",
    "mechanism.epsilon_lower": "The strongest lower bound of ε from true labels.",
    "mechanism.epsilon_lower.<method>": "The same by one method, at its own level.",
    "mechanism.subgroup_epsilon_lower": "A lower bound of ε within groups of rows with similar "
    "features.",
    "mechanism.lattice_epsilon_lower": "A lower bound of ε from remainders and digits of numbers, "
    "and from true numbers that stand in the release.",
    "mechanism.shared_noise_epsilon_lower": "What the noise of a neighbouring row reveals.",
    "mechanism.epsilon_observed": "ε of the counted shares; no bound.",
    "mechanism.channel_consistency": "Whether released labels are distributed as declared, given "
    "the true ones (p-value).",
    "mechanism.channel_consistency.g-test": "The same by a G test.",
    "mechanism.marginal_consistency": "Whether the shares of released labels can come from the "
    "declared mechanism (p-value).",
    "mechanism.rare_classes": "Whether labels of classes with at most 50 people were released as "
    "declared (p-value).",
    "mechanism.inconsistent_entries": "Entries of the channel that the counts contradict.",
    "companions.attack_gain": "What an attack on a column gains by the other released columns.",
    "companions.accuracy_with": "Its accuracy with them.",
    "companions.accuracy_without": "Its accuracy without them.",
    "person.epsilon": "ε of all audited columns and releases of a person whose labels stay the "
    "same, as declared.",
    "person.epsilon_lower": "The strongest lower bound of it from true labels.",
    "person.epsilon_lower.<method>": "The same by one method, at its own level.",
    "person.release_only_epsilon_lower": "A lower bound of it from the release alone.",
    "person.min_detectable_excess": "About the smallest excess over it that would be found.",
    "person.independence": "Whether noise of columns, or of releases, was drawn as declared "
    "(p-value).",
    "release_only.epsilon_lower": "A lower bound of ε from the release alone.",
    "instance_loss.mean": "The mean loss of a person, E[ν], by neighbours.",
    "instance_loss.mean_lower": "A certified lower bound of E[ν].",
    "instance_loss.mean_lower_if_claim_holds": "A lower bound of E[ν] if the claim holds.",
    "instance_loss.mean_by_model": "E[ν] by a model of the label.",
    "instance_loss.mean_learned": "E[ν] by neighbours in a learned metric.",
    "instance_loss.label_mean": "The part of E[ν] from the released label.",
    "instance_loss.features_mean": "The part of E[ν] from the features.",
    "instance_loss.quantile-<percent>": "This percentage of people lose that much, or less.",
    "instance_loss.prior.<class>": "The share of a label.",
    "attack.<attack>.<measure>": "How well an attack guesses true labels of rows not learnt from.",
    "attack.<attack>.in_sample.accuracy": "Its accuracy on rows learnt from.",
    "attack.best.<group>.<measure>": "The strongest attack on a part of the rows.",
    "attack.optimum.accuracy": "The best attack's accuracy if the claim holds, by a model.",
    "attack.ceiling.advantage": "The most that a release can add if the claim holds.",
    "attack.ceiling-estimate.accuracy": "What no attack exceeds if claim and model hold.",
    "attack.utility_bound": "A bound on every attack's accuracy, from the declared mechanism.",
    "numeric.<guess>.<error>": "How well true numbers of rows not learnt from are guessed.",
    "numeric.range": "The width of the declared range.",
    "aggregates.<attack>.accuracy": "How well labels are guessed from sums over bags.",
    "aggregates.<attack>.advantage": "The same, beyond the features alone.",
    "aggregates.expected_accuracy": "The accuracy that the model of the bags expects.",
    "aggregates.additive_advantage": "The advantage that it expects.",
    "aggregates.equivalent_epsilon": "ε of randomized response with that advantage.",
    "aggregates.certain_share": "The share of people whose label the sums reveal outright.",
    "aggregates.expected_certain_share": "The same, as expected from the features.",
    "aggregates.epsilon_lower": "A lower bound of ε from the noise of the sums.",
    "aggregates.noise_as_declared": "Whether each sum has noise of its own, as claimed (p-value).",
    "aggregates.noise_consistency": "Whether sums carry the declared noise (p-value).",
    "observational.epsilon": "ε by true against re-drawn labels, by a model.",
    "observational.epsilon_lower": "The strongest certified bound of it.",
    "observational.epsilon_lower.<method>": "The same by one method.",
    "observational.game.accuracy": "How often the true one of two labels is recognised.",
    "observational.game.features_only": "The same without the released label.",
    "observational.proxy_shift": "How far the model's log-odds are off at most.",
    "renyi.release.calibration_error": "How far the model behind the estimate is off.",
    "renyi.release.effective_rows.order_2": "Rows that the estimate at order 2 depends on.",
    "renyi.release.largest_order": "The largest order that the rows support.",
    "renyi.synthetic.calibration_error": "The same, for synthetic features.",
    "renyi.synthetic.effective_rows.order_2": "The same, for synthetic features.",
    "renyi.synthetic.largest_order": "The same, for synthetic features.",
    "renyi.double_rr.dp_at_delta": "ε at δ = 10⁻⁵ of double randomized response.",
    "renyi.double_rr.attack_bound": "A bound on every attack's accuracy, from the same.",
    "renyi.release.dp_at_delta": "ε at δ = 10⁻⁵ of the released rows.",
    "renyi.release.attack_bound": "A bound on every attack's accuracy, from the same.",
    "synthetic.replaced_share": "The share of rows with synthetic features.",
    "synthetic.kept_features": "Whether more features are the true ones than λ says (p-value).",
    "synthetic.discriminator_auc": "How well synthetic and true rows can be distinguished.",
    "synthetic.copies_share": "Synthetic rows that equal an original one.",
    "synthetic.repeats_share": "Original rows that equal another original one.",
    "synthetic.nearer_share": "Synthetic rows nearer to originals than originals are.",
    "synthetic.own_rows": "Whether synthetic features were drawn independently of the row they "
    "replace (p-value).",
    "synthetic.own_row_share": "Synthetic rows nearer to the row that they replace.",
    "synthetic.copied_share": "Synthetic rows that are copies of one audited person's row.",
    "synthetic.generator_blind": "Whether the generator saw none of the audited rows (p-value).",
    "synthetic.memorisation_share": "Synthetic rows nearer to audited than to held-out rows.",
    "synthetic.training_epsilon_lower": "A lower bound of ε of the generator's training.",
    "synthetic.singling_out.<rate>": "People whom a synthetic row's values single out.",
    "synthetic.linkability.<rate>": "People whose halves of columns a synthetic row links.",
    "model.epsilon": "Of `audit_model`: a lower bound of ε of the training.",
    "model.curve_epsilon": "ε of training at δ, if its curve is that of Gaussian noise.",
    "model.guesses": "Guesses of coins that are right.",
    "model.guessed": "Coins that were guessed.",
    "model.detectable": "The ε that would be found if guesses show all of it.",
    "predictions.accuracy": "Of `run --predictions`: training labels guessed with the "
    "probabilities.",
    "predictions.features_accuracy": "Training labels guessed from the features alone.",
    "predictions.gain": "What the probabilities add to the features.",
    "predictions.commonest": "Rows with the commonest label.",
    "predictions.epsilon_lower": "A lower bound of ε of the training, by drawn labels.",
    "predictions.curve_epsilon_lower": "The same at δ, if its curve is that of Gaussian noise.",
    "predictions.canary_guesses": "Drawn labels that were guessed.",
    "columns.indices": "Columns that number the rows.",
    "columns.identifiers": "Columns that differ in nearly every row.",
    "columns.texts": "Columns of free text.",
    "columns.dates": "Columns of exact dates.",
    "columns.unread": "Columns with cells that were not read as they stand.",
    "columns.label_written_otherwise": "Rows that write their label otherwise than most do.",
    "columns.whole_reports": "Reports of whole numbers alone, among others with noise.",
    "columns.truth": "Columns of true labels in the release.",
    "columns.deciding": "Columns that reveal 98 % of the labels, or follow from them.",
    "columns.lagged": "Columns that reveal 98 % of the labels of nearby rows.",
    "columns.decided": "The largest share of people whose label one column's value decides.",
    "columns.read_off": "The largest share of people whose label a representation reveals.",
    "columns.clear_rows": "The largest share of people told by columns to have their true label.",
    "columns.one_label": "The largest share of rows whose equal values in a column have one label.",
    "columns.told": "The share of labels that the best single column reveals.",
    "columns.position": "The share of labels that the row number reveals.",
    "columns.row_order": "Nearby rows with the same label, beyond chance.",
    "columns.ordered": "Whether the row order reveals labels beyond the features (1: yes).",
    "features.distortion": "The measured error of distances between projected sparse rows.",
    "features.distortion_bound": "The same, as a bound over projections.",
    "assumptions.feature_blind": "Whether released labels depend on true labels alone (p-value).",
    "assumptions.shared_noise": "Whether each row's noise is its own (p-value).",
    "assumptions.agreement_along_the_file": "Whether released labels relate to features alike "
    "along the file, without true labels (p-value).",
    "assumptions.shared_with_others": "Whether it is not another person's (p-value).",
    "assumptions.unknown_columns": "Columns that refute the claim if from before the noise.",
    "assumptions.changed_rows": "Rows whose released label a column fixes, whatever the true one.",
    "assumptions.selected": "Whether rows look selected by their released label.",
    "assumptions.counted_rows": "Rows that bounds count, as others share their noise.",
    "assumptions.composed_epsilon": "ε of one person who has several rows.",
    "assumptions.epsilon_with_unknown": "The bound of the release alone, were all columns there "
    "before the noise.",
    "seeds.p_value": "Whether a common seed or a checksum explains the noise (p-value).",
    "power.min_detectable_excess": "The smallest excess of ε found with 90 % power.",
    "power.rows_needed": "Further rows for the power that the policy asks for.",
    "power.detectable_epsilon": "The smallest ε found to lie above 0.",
    "power.smallest_clear_share": "The smallest share of rows in the clear that is found.",
    "power.smallest_clear_group": "The smallest group of rows in the clear that is found.",
    "power.with_truth.min_detectable_excess": "The excess found with true labels.",
    "power.with_truth.rows_needed": "Further rows needed with true labels.",
    "person.people": "People in any of several releases.",
    "person.people_in_all": "People in all of them.",
    "person.unchanged": "Those of them whose true label stayed the same.",
    "person.changed_features": "Rows with other features than in the release before.",
    "person.epsilon_if_fresh": "ε of all releases if each draws its answers again.",
    "person.epsilon_if_remembered": "The same if answers for labels that did not change are "
    "repeated.",
    "person.fresh_noise": "Whether each release draws noise of its own (p-value).",
    "person.remembered_noise": "Whether a label that did not change has the same answer (p-value).",
    "person.reused_noise": "Whether random numbers were used once (p-value).",
    "person.remembered_share": "The share of answers that were repeated.",
    "person.least_changed_if_fresh": "The least share of true labels that changed, if noise is "
    "fresh.",
    "person.least_changed_if_remembered": "The same, if noise is remembered.",
    "test_accuracy": "The accuracy of a model that learnt from the release, on test rows.",
    "test_squared_error": "Its squared error.",
    "test_constant": "What the best single answer reaches on them.",
    "test_auc": "The area under the model's ROC curve; of several labels each against the rest, "
    "weighted by shares.",
    "test_poisson_deviance": "Its Poisson deviance, if it was trained for that.",
}
"""Single numbers."""

CURVES: Final = {
    "mechanism.rdp": "The Rényi divergence of the declared mechanism over the order α.",
    "mechanism.delta": "δ of the declared mechanism over ε.",
    "instance_loss.exceedance": "J(τ): the share of people who lose τ nats or more.",
    "instance_loss.exceedance_learned": "The same in a learned metric.",
    "instance_loss.exceedance_unaveraged": "The same for their own released row.",
    "attack.best.accuracy_by_confidence": "The accuracy of the most confident guesses, over their "
    "share.",
    "aggregates.multiplicative": "The share of people whose log-odds shift by τ or more.",
    "observational.epsilon_by_shift": "The bound of ε over how far the model is off.",
    "renyi.release": "A certified bound of D_α between the released rows of two labels.",
    "renyi.release.estimate": "The same, estimated by a model.",
    "renyi.release.features": "The same for the features alone.",
    "renyi.release.if_claim_holds": "The same for features and claimed channel.",
    "renyi.synthetic": "A certified bound of D_α between true and synthetic features.",
    "renyi.synthetic.estimate": "The same, estimated by a model.",
    "renyi.double_rr_epsilon": "ε of double randomized response over the order α.",
    "person.best_guess": "How often the best guess is right, over the number of releases.",
    "person.accuracy_by_releases": "How often a vote is right, over the number of releases.",
    "renyi.double_rr_floor": "The least that it can be: dummy features.",
}
"""Numbers as functions of one variable."""

HISTOGRAMS: Final = {
    "instance_loss.histogram": "How many people lose how much.",
}
"""Counts of people."""

_NAME: Final = r"[a-z0-9_-]+"


def meaning(identifier: str) -> str | None:
    """Return what an id stands for; None where it is not of this package."""
    every = ESTIMATES | CURVES | HISTOGRAMS
    if identifier in every:
        return every[identifier]
    fits = (p for p in every if "<" in p and re.fullmatch(_expression(p), identifier))
    return next((every[pattern] for pattern in fits), None)


def attacks_of_their_own() -> frozenset[str]:
    """Return what stands where an attack's name stands in ids, but is none: best, vote …"""
    parts = (identifier.split(".") for identifier in ESTIMATES | CURVES)
    return frozenset(p[1] for p in parts if p[0] == "attack" and len(p) > 1 and "<" not in p[1])


def _expression(pattern: str) -> str:
    return re.sub(r"<\w+>", _NAME, pattern.replace(".", r"\."))
