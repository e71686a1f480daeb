"""What the numbers are called, and what the words mean."""

from typing import Final

from ldpaudit.result import AuditRecord, Verdict

VERDICTS: Final[dict[Verdict, str]] = {
    "fail": "Violation found",
    "pass": "No violation found",
    "inconclusive": "Inconclusive",
}

MARKS: Final = {
    "exact": "computed from the declared mechanism alone; no data, no uncertainty",
    "lower": "certified lower bound: the truth is at least this, at the stated confidence",
    "upper": "certified upper bound: the truth is at most this, at the stated confidence",
    "interval": "certified interval: the truth lies within it, at the stated confidence",
    "estimated": "estimated: holds under the assumptions printed with it, which are not tested",
}

_NAMES: Final = {
    "mechanism.epsilon": "Declared ε",
    "mechanism.lambda": "λ, the probability of drawing the label anew",
    "mechanism.keep_probability": "Probability that the released label is the true one",
    "mechanism.binary_flip": "Probability of a flip, λ/2",
    "mechanism.epsilon_observed": "Observed frequencies",
    "mechanism.inconsistent_entries": "Entries of the channel outside their intervals",
    "mechanism.total_variation": "Total variation between two labels' outputs",
    "mechanism.max_bias": "Largest bias of a released label",
    "mechanism.max_mean_squared_error": "Largest mean squared error of a released label",
    "mechanism.feature_epsilon": "Exact ε of the features' noise",
    "mechanism.epsilon_lower": "True labels, strongest bound",
    "release_only.epsilon_lower": "The release alone",
    "mechanism.channel_consistency": "Counts against the declared channel (p-value)",
    "mechanism.channel_consistency.g-test": "Counts against the declared channel, G test (p-value)",
    "mechanism.marginal_consistency": "Released shares against the declaration (p-value)",
    "mechanism.rdp": "Rényi divergence of the declared mechanism",
    "mechanism.delta": "δ(ε) of the declared mechanism",
    "instance_loss.mean": "Mean loss E[ν], by neighbours",
    "instance_loss.mean_lower": "Mean loss E[ν], the stronger bound",
    "instance_loss.mean_lower.cells": "Mean loss E[ν], by score cells",
    "instance_loss.mean_lower.donsker-varadhan": "Mean loss E[ν], Donsker–Varadhan form",
    "instance_loss.mean_lower_if_claim_holds": "Mean loss E[ν], a bound if the claim holds",
    "instance_loss.mean_by_model": "Mean loss E[ν], by a model",
    "instance_loss.mean_learned": "Mean loss E[ν], by neighbours in a learned metric",
    "instance_loss.features_mean": "Mean loss through the features, by neighbours",
    "instance_loss.label_mean": "Mean loss through the released label",
    "instance_loss.exceedance": "J(τ): share of people who lose τ nats or more",
    "instance_loss.exceedance_learned": "J(τ) by neighbours in a learned metric",
    "instance_loss.exceedance_unaveraged": "Share of people whose own released row loses τ or more",
    "instance_loss.histogram": "Instance-based loss of the people in the release",
    "attack.utility_bound": "Bound on every attack’s accuracy",
    "attack.best.accuracy_by_confidence": "Accuracy among the most confident guesses",
    "renyi.release": "Released rows of two labels",
    "renyi.release.estimate": "Released rows of two labels, by a model",
    "renyi.release.features": "Features of two labels",
    "renyi.release.if_claim_holds": "Claimed channel and features together",
    "renyi.release.calibration_error": "Calibration error of the model behind the Rényi estimates",
    "renyi.release.effective_rows.order_2": "Effective rows at order 2, released rows",
    "renyi.release.largest_order": "Largest order that the rows support, released rows",
    "renyi.release.dp_at_delta": "ε at δ = 10⁻⁵ that the estimated curve implies",
    "renyi.release.attack_bound": "Bound on every attack’s accuracy, by the estimated curve",
    "renyi.synthetic": "True against synthetic features",
    "renyi.synthetic.estimate": "True against synthetic features, by a model",
    "renyi.synthetic.calibration_error": "Calibration error of the discriminator of synthetic rows",
    "renyi.synthetic.effective_rows.order_2": "Effective rows at order 2, synthetic features",
    "renyi.synthetic.largest_order": "Largest order that the rows support, synthetic features",
    "renyi.double_rr_epsilon": "Double randomized response, with the estimated divergence",
    "renyi.double_rr_floor": "Floor: the label alone, dummy features",
    "renyi.double_rr.dp_at_delta": "ε at δ = 10⁻⁵ of double randomized response, estimated",
    "renyi.double_rr.attack_bound": "Bound on every attack’s accuracy, double RR, estimated",
    "synthetic.replaced_share": "Share of rows with synthetic features",
    "synthetic.own_row_share": "Synthetic rows nearer to the row that they replace",
    "synthetic.discriminator_auc": "AUC of telling synthetic from true rows",
    "synthetic.copies_share": "Synthetic rows that equal an original row",
    "synthetic.repeats_share": "Original rows that equal another original row",
    "synthetic.nearer_share": "Synthetic rows nearer to originals than originals are",
    "synthetic.memorisation_share": "Synthetic rows nearer to audited than to held-out rows",
    "synthetic.training_epsilon_lower": "ε of the generator’s training",
    "observational.epsilon_lower": "True against re-drawn labels",
    "observational.epsilon_lower.cells": "True against re-drawn labels, rows with equal features",
    "observational.epsilon_lower.canaries": "True against re-drawn labels, canaries",
    "observational.epsilon": "True against re-drawn labels, by a model",
    "observational.epsilon_by_shift": "True against re-drawn labels, by how far the model is off",
    "observational.proxy_shift": "How far the model’s log-odds are off at most",
    "observational.game.accuracy": "True or re-drawn label, told with the release",
    "observational.game.features_only": "True or re-drawn label, told without",
    "aggregates.epsilon_lower": "Noise of the released sums",
    "aggregates.noise_consistency": "Noise of the sums against the declaration (p-value)",
    "aggregates.expected_accuracy": "Accuracy that the bags’ posterior expects",
    "aggregates.additive_advantage": "Additive advantage that the bags’ posterior expects",
    "aggregates.equivalent_epsilon": "Randomized response with the same additive advantage",
    "aggregates.certain_share": "Share of people whose label the release states",
    "aggregates.expected_certain_share": "The same, as expected from the features",
    "aggregates.multiplicative": "Share of people whose log-odds shift by τ or more",
    "test_accuracy": "Accuracy on test rows",
    "test_squared_error": "Squared error on test rows",
    "power.min_detectable_excess": "Smallest excess ε found with 90 % power",
    "power.rows_needed": "Further rows for the power that the policy asks for",
    "power.detectable_epsilon": "Smallest ε of which some is found with 90 % power",
}

_NUMBERED: Final = {
    "instance_loss.quantile-": "Loss, percentile",
    "instance_loss.prior.class-": "Share of class",
}

ATTACKS: Final = {
    "best": "Strongest attack",
    "prior": "Majority guess",
    "released-label": "Believing the released label",
    "knn": "Nearest neighbours",
    "classifier": "Noise-aware classifier",
    "bayes": "Classifier and channel (Bayes)",
    "bayes-whole-release": "Whole release, channel (Bayes)",
    "oracle": "Oracle (true model, channel)",
    "prior-shift": "Another prior (Bayes)",
    "synthetic-aware": "Who knows the generator",
    "unknown-channel": "Who does not know the channel",
    "bayes-network": "Network and channel (Bayes)",
    "classifier-logistic-plain": "Logistic regression, plain",
    "classifier-logistic-forward": "Logistic regression, forward",
    "classifier-logistic-backward": "Logistic regression, backward",
    "classifier-boosting-plain": "Boosting, plain",
    "classifier-boosting-forward": "Boosting, forward",
    "classifier-boosting-backward": "Boosting, backward",
    "classifier-network-plain": "Network, plain",
    "classifier-network-forward": "Network, forward",
    "classifier-network-backward": "Network, backward",
    "features-only": "Features only, no release",
    "ceiling": "Ceiling of the claim",
    "optimum": "Optimum against the claim",
}

METRICS: Final = {
    "accuracy": "Accuracy",
    "balanced_accuracy": "Balanced accuracy",
    "auc": "AUC",
    "tpr_at_fpr_1pct": "TPR at 1 % FPR",
    "calibration_error": "Calibration error",
    "advantage": "Additive advantage",
    "multiplicative_advantage": "Multiplicative advantage",
    "in_sample.accuracy": "Accuracy in sample",
}
"""Scores of an attack in the order of the table's columns."""

AUDITS: Final = {
    "mechanism": "Mechanism",
    "instance-loss": "Instance-based loss",
    "label-inference": "Label inference",
    "renyi": "Rényi divergence",
    "synthetic": "Synthetic features",
    "numeric-inference": "Numeric labels",
    "observational": "True against re-drawn labels",
    "aggregates": "Aggregates of labels",
    "power": "Power",
    "policy": "Policy",
    "comparison": "Comparison",
    "reading": "Reading",
}

SOURCES: Final = {
    "file": "in the released file",
    "options": "by an option of the command",
    "policy": "by the policy",
    "api": "by the calling program",
    None: "not at all",
}

GLOSSARY: Final = (
    ("audit", "An attempt to refute a claim from data. It can refute; it cannot prove."),
    (
        "advantage",
        "What the release adds to an attack. Additive: the gain in accuracy over an attacker who "
        "sees the features alone. Multiplicative: the shift of the log-odds of the label, in nats; "
        "it can be large where the additive one is zero.",
    ),
    (
        "AUC",
        "The probability that an attack ranks a random person with the label above one without; "
        "0.5 is guessing.",
    ),
    (
        "ceiling",
        "The best accuracy that any attacker could have if the claim holds, whatever the attack.",
    ),
    (
        "certified",
        "A confidence bound that assumes nothing but independent rows and what is listed for it "
        "among the assumptions. At 95 % it is wrong in at most 5 % of audits.",
    ),
    (
        "claim",
        "What the release promises: a mechanism with its parameter, declared in the file, by an "
        "option or by a policy.",
    ),
    (
        "ε (epsilon)",
        "The privacy parameter in nats: whatever is released, no two labels differ in its "
        "probability by more than a factor of e^ε. Smaller leaks less; ∞ is no limit.",
    ),
    ("estimated", "A number that needs an assumption, which is printed with it."),
    ("exact", "A number computed from the declared mechanism alone."),
    (
        "J(τ)",
        "The share of people whose instance-based loss ν is at least τ nats.",
    ),
    (
        "λ (lambda)",
        "Randomized response keeps the label with probability 1 − λ and otherwise draws one "
        "uniformly from all k labels. Not the probability of a flip, which is λ/2 for two labels.",
    ),
    ("nat", "The unit of ε, ν and divergences: logarithms are natural, 1 nat is a factor e."),
    (
        "ν (instance-based loss)",
        "How far the features and the released label of one person shift the log-odds of that "
        "person's label, in nats, away from the shares of the labels. It counts what the features "
        "give away as well.",
    ),
    ("power", "The probability that the audit finds a violation of a given size."),
    (
        "TPR at 1 % FPR",
        "The share of people with the label that an attack finds while it wrongly names 1 % of "
        "the others.",
    ),
)

LIMITS: Final = (
    "An audit can refute a claim; it cannot prove one. A stronger attack than those tried here may "
    "exist.",
    "Rows are taken to be independent draws from one population.",
    "Only the label is taken to be confidential. What the features themselves reveal about a "
    "person is not measured.",
)


_PARTS: Final = {
    "numeric": {
        "best": "Strongest guess of the number",
        "prior": "Other people’s labels",
        "prior-shift": "Another prior (Bayes)",
        "synthetic-aware": "Who knows the generator",
        "unknown-channel": "Who does not know the channel",
        "bayes-network": "Network and channel (Bayes)",
        "classifier-logistic-plain": "Logistic regression, plain",
        "classifier-logistic-forward": "Logistic regression, forward",
        "classifier-logistic-backward": "Logistic regression, backward",
        "classifier-boosting-plain": "Boosting, plain",
        "classifier-boosting-forward": "Boosting, forward",
        "classifier-boosting-backward": "Boosting, backward",
        "classifier-network-plain": "Network, plain",
        "classifier-network-forward": "Network, forward",
        "classifier-network-backward": "Network, backward",
        "features-only": "Features only, no release",
        "released-value": "Believing the released number",
        "posterior-mean": "Posterior mean",
        "posterior-median": "Posterior median",
        "interval": "Most probable interval",
        "mse": "mean squared error",
        "mse_gain": "squared error gained on other people’s labels",
        "within_1": "within 1 % of the range",
        "within_5": "within 5 % of the range",
        "within_10": "within 10 % of the range",
        "exact": "exact",
        "bin_accuracy": "right group of labels",
        "bin_advantage": "right group, gained on the features",
        "range": "Width of the declared range",
    },
    "aggregates": {
        "best": "Strongest attack on bags",
        "prior": "Majority guess",
        "prior-shift": "Another prior (Bayes)",
        "synthetic-aware": "Who knows the generator",
        "unknown-channel": "Who does not know the channel",
        "bayes-network": "Network and channel (Bayes)",
        "classifier-logistic-plain": "Logistic regression, plain",
        "classifier-logistic-forward": "Logistic regression, forward",
        "classifier-logistic-backward": "Logistic regression, backward",
        "classifier-boosting-plain": "Boosting, plain",
        "classifier-boosting-forward": "Boosting, forward",
        "classifier-boosting-backward": "Boosting, backward",
        "classifier-network-plain": "Network, plain",
        "classifier-network-forward": "Network, forward",
        "classifier-network-backward": "Network, backward",
        "features-only": "Features only, no release",
        "bag": "The bag’s released share",
        "posterior": "Features and the bag’s released share",
        "accuracy": "accuracy",
        "advantage": "additive advantage",
    },
}
"""What the parts of an id are called, by its first."""


def name_of(identifier: str) -> str:
    """Return what a number is called; its id where it has no name here."""
    if identifier in _NAMES:
        return _NAMES[identifier]
    method = identifier.removeprefix("mechanism.epsilon_lower.")
    if method != identifier:
        return f"True labels, {method.replace('-', ' ').replace('_', ' ')}"
    for prefix, name in _NUMBERED.items():
        if identifier.startswith(prefix):
            return f"{name} {identifier.removeprefix(prefix)}"
    first, _, rest = identifier.partition(".")
    parts = [_PARTS.get(first, {}).get(part) for part in rest.split(".")]
    if all(parts):
        return ": ".join(part for part in parts if part)
    attack, _, metric = rest.partition(".")
    group, _, score = metric.partition(".")
    if first != "attack" or (metric not in METRICS and score not in METRICS):
        return identifier
    named = ATTACKS.get(attack, attack)
    if metric in METRICS:
        return f"{named}: {METRICS[metric]}"
    return f"{named}, {group_name(group)}: {METRICS[score]}"


def group_name(group: str) -> str:
    """Return what a group of rows is called: ``class-2``, or ``slice-1-3`` of the first column."""
    kind, *numbers = group.split("-")
    if kind == "slice" and len(numbers) == 2:
        return f"column {numbers[0]}, slice {numbers[1]}"
    return " ".join([kind, *numbers])


REFERENCE_WORDS: Final = {
    "prior": "what anyone guesses who sees nobody: the most frequent class for all",
    "features-only": "what features give away by themselves, to someone who knows true labels of "
    "other people but has no release; what is guessed right beyond it comes from the release",
    "oracle": "what an attacker reaches who learns features and channel from true labels of other "
    "people: about the most that learning from so many rows can reach",
    "optimum": "what the best attack would reach on a release made as claimed, by the model of how "
    "labels depend on features",
    "ceiling": "what no attack can exceed if the claim holds, by the same model",
}
"""What each reference means, in the order in which it is read."""


def audit_name(identifier: str) -> str:
    """Return what an audit is called; its id where it has no name here."""
    return AUDITS.get(identifier, identifier)


def missing(records: tuple[AuditRecord, ...], audit: str) -> str:
    """Return why a part of the report is empty."""
    record = next((r for r in records if r.id == audit), None)
    if record is None:
        return "Not measured: this audit was not asked for."
    if record.status == "ran":
        return "Not measured: the audit ran but this does not apply to the release."
    word = "was skipped" if record.status == "skipped" else "could not be finished"
    reason = record.reason.rstrip(".")
    return f"Not measured: the audit {word}{': ' + reason if reason else ''}."
