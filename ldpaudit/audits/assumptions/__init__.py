"""Whether the assumptions hold that bounds of ε need, and what bounds may use where they do not.

In: the release. Out: p-values, columns and rows to leave out. In the order of reading:

* ``views``: what noise did to each row; ``places``: the orders and groups where it is looked at;
* ``noise``: where it is not white; ``pattern``: whether it follows the rows' numbers;
  ``rows``: which rows share noise, and which of them count;
* ``changed``: rows whose released label a rule fixed after the noise;
* ``causes``: the columns that explain a finding; ``doubts``: those that may be from after the
  noise; ``without_truth`` and ``alone``: what can be said without true labels;
* ``standing``: what is left for bounds; ``words`` and ``audit``: how it is reported.

Other audits ask

* ``standing.sound_features(context)``: the features without columns computed from the released
  label. Every bound of ε that learns from features learns from these;
* ``standing.feature_blind(context)``: with true labels a valid p-value of "the released label
  depends on the true label alone" on the sound features; None where it is not tested;
* ``rows.counted_rows(context)``: the rows that a bound may count, None for all of them;
* ``rows.clusters(context)``: rows that must be in one half, None where every row is on its own.

Numbers for checks, by id:

* ``assumptions.feature_blind``: a certified upper bound, p-value. Where it is small the claim is
  refuted ("the released labels depend on the features"), and bounds for feature-blind channels are
  estimated and not among the finding's bounds;
* ``assumptions.shared_noise``: a certified upper bound, p-value of "noise is drawn for each row";
* ``mechanism.shared_noise_epsilon_lower``: a certified lower bound of ε by what a neighbour's noise
  gives away, also among the finding's bounds; at most alpha in error, on its own share;
* ``assumptions.unknown_columns``, ``assumptions.counted_rows``: how many;
* ``assumptions.composed_epsilon``: exact, what a claim per row becomes per group of rows.
"""
