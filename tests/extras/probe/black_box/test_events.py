"""Samples to event to bound, in one process: levels held and leaks found."""

import contextlib
from fractions import Fraction

import numpy as np
import pytest
import randomizers
from scipy.stats import binom, chi2_contingency

from ldpaudit.errors import InputError
from ldpaudit.estimators.epsilon.guesses import GuessCounts, epsilon_lower
from ldpaudit.extras.probe.black_box import events, work
from ldpaudit.extras.probe.black_box.events import (
    Bins,
    Goal,
    View,
    _g_test,
    _named,
    _with_sum,
    choose_events,
    fit_binning,
    fit_views,
)
from ldpaudit.extras.probe.black_box.outputs import (
    OutputForm,
    as_outputs,
    joined,
    joined_columns,
)
from ldpaudit.extras.probe.black_box.request import BlackBoxRequest
from ldpaudit.extras.probe.black_box.work import audit_black_box
from ldpaudit.work.tasks import Pool


def bound(function, n, seed, features=None, inputs=(0, 24), alpha=0.01, **settings):
    """Return the certified bound of ε, as the command would."""
    rng = np.random.default_rng(seed)

    def draw(value, size):
        table = as_outputs(function(value, size, rng, **settings), size)
        if features is None:
            return table
        return joined_columns([as_outputs(features(table, i), size) for i in inputs])

    training = min(n // 2, max(n // 10, 20_000))
    candidates = 2 * (n - training)
    choice = choose_events([draw(v, training) for v in inputs], Goal(candidates, alpha), rng)[0]
    firsts = int(rng.binomial(candidates, 0.5))
    a = choice.event.counts(draw(inputs[choice.first], firsts))
    b = choice.event.counts(draw(inputs[choice.second], candidates - firsts))
    counts = GuessCounts(candidates, a[0] + b[1], a[1] + b[0], choice.event.sides)
    return epsilon_lower(counts, alpha).epsilon


HONEST = [randomizers.grr, randomizers.sue, randomizers.laplace]


def misses(function, runs, n, alpha):
    return sum(bound(function, n, seed, alpha=alpha) > 1 + 1e-9 for seed in range(runs))


@pytest.mark.parametrize("function", HONEST)
def test_levels_are_held(function):
    # 30 runs at 20 %: more than binom.isf misses have a chance of 1e-6.
    assert misses(function, 30, 1000, 0.2) <= binom.isf(1e-6, 30, 0.2)


@pytest.mark.validate
@pytest.mark.parametrize("function", HONEST)
def test_levels_are_held_over_many_runs(function):
    assert misses(function, 600, 2000, 0.05) <= binom.isf(1e-6, 600, 0.05)


@pytest.mark.parametrize(
    ("function", "features", "least"),
    [
        (randomizers.grr, None, 0.90),
        (randomizers.subset, None, 0.94),
        (randomizers.sue, None, 0.94),
        (randomizers.oue, None, 0.94),
        (randomizers.she, None, 0.90),
        (randomizers.blh, randomizers.blh_support, 0.94),
        (randomizers.olh, randomizers.olh_support, 0.94),
        (randomizers.laplace, None, 0.93),
    ],
)
def test_bounds_come_near_the_truth(function, features, least):
    # About five standard deviations below what is expected of 10⁵ samples.
    assert bound(function, 100_000, 3, features) > least


FIGURES = [
    (randomizers.grr, None, 10**6, 0.977),
    (randomizers.subset, None, 10**6, 0.990),
    (randomizers.sue, None, 10**6, 0.990),
    (randomizers.oue, None, 10**6, 0.989),
    (randomizers.she, None, 10**6, 0.986),
    (randomizers.blh, randomizers.blh_support, 10**5, 0.966),
    (randomizers.olh, randomizers.olh_support, 10**6, 0.989),
]


@pytest.mark.validate
@pytest.mark.parametrize(("function", "features", "n", "wanted"), FIGURES)
def test_figures(function, features, n, wanted):
    found = [bound(function, n, seed, features) for seed in range(5)]
    assert np.mean(found) >= wanted


FAULTY = [
    randomizers.scale_of_half_the_sensitivity,
    randomizers.lambda_as_epsilon,
    randomizers.forgets_the_rest,
    randomizers.off_by_one,
    randomizers.one_noise_for_all_bits,
    randomizers.one_noise_for_all_entries,
    randomizers.one_sided_noise,
    randomizers.subset_in_order,
    randomizers.identity,
]


@pytest.mark.parametrize("function", FAULTY)
def test_faults_are_found(function):
    assert bound(function, 40_000, 1) > 1.05


def test_a_missing_perturbation_of_some_reports_is_found():
    found = bound(randomizers.forgets_some, 100_000, 1, randomizers.olh_support)
    assert found > 1.03


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_a_second_chance_of_the_true_bit_is_found(epsilon, optimized):
    found = bound(randomizers.extra_chance, 100_000, 2, epsilon=epsilon, optimized=optimized)
    assert found > epsilon + 0.1


def test_nothing_is_found_where_nothing_is():
    assert bound(randomizers.constant, 2000, 1) == 0
    assert bound(randomizers.olh, 20_000, 1) < 0.1  # A seed without its hash tells nothing.


def test_the_most_telling_pair_comes_first():
    rng = np.random.default_rng(3)
    tables = [as_outputs(randomizers.laplace(value, 8000, rng), 8000) for value in (0, 3, 12, 24)]
    choices = choose_events(tables, Goal(20_000, 0.05), rng)
    assert (len(choices), (choices[0].first, choices[0].second)) == (6, (0, 3))


def test_sets_and_text_are_told_apart():
    def sets(value, n, rng, **_):
        return [frozenset(map(str, row)) for row in randomizers.subset(value, n, rng)]

    def text(value, n, rng, **_):
        return [f"answer {label}" for label in randomizers.grr(value, n, rng)]

    assert bound(sets, 8000, 1) > 0.8
    assert bound(text, 8000, 1) > 0.65


@pytest.mark.parametrize(
    ("returned", "shape", "kind"),
    [
        (np.arange(3), (3, 1), "i"),
        (np.ones((3, 2, 2)), (3, 4), "f"),
        ([1, 2, 3], (3, 1), "i"),
        ((1.5, 2, 3), (3, 1), "f"),
        (["a", "b", "a"], (3, 1), "O"),
        (np.array(["a", "b", "a"]), (3, 1), "U"),
        ([(1, 2), (3, 4), (5, 6)], (3, 2), "i"),
        ([(1, [0, 1]), (3, [1, 1]), (5, [0, 0])], (3, 3), "i"),
        ([("x", 1), ("y", 2), ("z", 3)], (3, 2), "O"),
        ([{1, 2}, {3}, set()], (3, 1), "O"),
        ([[1], [2, 3], []], (3, 1), "O"),
        ([np.ones(4), np.ones(4), np.ones(4)], (3, 4), "f"),
        ([2**80, 1, 2], (3, 1), "O"),
        ([Fraction(1, 3)] * 3, (3, 1), "O"),
        (np.array([(1, 2.0)] * 3, dtype=[("a", "i4"), ("b", "f8")]), (3, 2), "f"),
        (np.array(["2020-01-01"] * 3, dtype="M8[D]"), (3, 1), "i"),
    ],
)
def test_what_can_be_read(returned, shape, kind):
    table = as_outputs(returned, 3)
    assert (table.shape, table.dtype.kind) == (shape, kind)


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "got NoneType"),
        (3.0, "got float"),
        ("abc", "got str"),
        (iter([1, 2, 3]), "got list_iterator"),
        ([1, 2], "must return 3 outputs, as requested. Got 2"),
        (np.ones((2, 3)), "must return 3 outputs, as requested. Got 2"),
        (np.float64(3), "a single value"),
        ([{}, {}, {}], "got dict"),
        (np.ones(3, dtype=complex), "got complex128"),
        (np.empty((3, 0)), "at least one entry"),
    ],
)
def test_what_cannot(returned, words):
    with pytest.raises(InputError, match=words):
        as_outputs(returned, 3)


def test_calls_must_agree():
    with pytest.raises(InputError, match="2 in one call and 3 in another"):
        joined([np.ones((4, 2)), np.ones((4, 3))])
    assert joined([np.ones((1, 1)), np.array([["a"]])]).tolist() == [[1.0], ["a"]]


def test_frequent_numbers_have_bins_of_their_own():
    rng = np.random.default_rng(1)
    column = np.where(rng.random(5000) < 0.3, 0.0, rng.normal(size=5000))
    binning = fit_binning(column)
    zero = int(binning.codes(np.zeros(1))[0])
    assert binning.describe(zero) == "= 0"
    codes = binning.codes(column)
    assert (codes == zero).sum() == (column == 0).sum()
    assert codes.max() < binning.bins
    assert np.all(codes > 0)
    assert "∞" in binning.describe(binning.bins - 1)


def test_unseen_values_have_bin_zero():
    assert fit_binning(np.array([1, 2, 2])).codes(np.array([3, 2])).tolist() == [0, 2]
    text = fit_binning(np.array(["a", "b", "b"], dtype=object))
    assert text.codes(np.array(["c", "b"], dtype=object)).tolist() == [0, 1]
    assert text.describe(0) == "any other"


def test_views_that_suit_the_outputs():
    rng = np.random.default_rng(1)

    def names(table):
        return [view.name for view in fit_views([table])]

    assert names(rng.normal(size=(500, 1))) == ["entries"]
    assert names(rng.normal(size=(500, 3))) == ["entries", "deviations"]
    assert names(rng.integers(0, 2, (500, 3))) == ["entries", "outputs"]
    assert names(rng.integers(0, 25, (5000, 7))) == ["entries", "items"]
    assert names(rng.integers(0, 2, (5000, 40))) == ["entries"]


def form_of(*calls):
    return OutputForm.of(joined([as_outputs(call, len(call)) for call in calls]))


@pytest.mark.parametrize(
    ("form", "alone", "odd", "kept"),
    [
        (form_of([0, 1, 1]), [0, 1], None, False),
        (form_of([0, 1, 1]), [0, 1], 0.5, False),
        (form_of([0, 1, 1]), [0, 1], 2.0, True),
        (form_of([0, 1, 1]), [0, 1], "a", False),
        (form_of([0, 1, 1]), [0, 1], 2**80, False),
        (form_of([0.5, 1.5]), [0.5, 1.0], float("nan"), True),
        (form_of([0, None]), [0, 1], None, True),
        (form_of([(0, 1), (1, 1)]), [(0, 1), (1, 0)], (1,), False),
        (form_of([(0, 1), (1,)]), [(0, 1), (1, 0)], (1,), True),
        (form_of([(0, 1), (1,)], [(0, 1), (1, 1)]), [(0, 1), (1, 0)], (), True),
        (form_of(["a", "b"]), ["a", "b"], "longer", True),
        (form_of([{1}, {2}]), [{1}, {2, 3}], set(), True),
    ],
)
def test_an_odd_output_changes_nothing_about_the_others(form, alone, odd, kept):
    by_themselves = form.read(alone, len(alone))
    with_it = form.read([*alone, odd], len(alone) + 1)
    assert with_it.dtype == by_themselves.dtype == form.dtype
    assert with_it[: len(alone)].tolist() == by_themselves.tolist()
    assert (len(by_themselves), len(with_it)) == (len(alone), len(alone) + kept)


def test_text_of_any_length_is_found_again():
    form = OutputForm.of(np.array([["a"], ["bcd"]]))
    assert form.read(np.array(["a", "b"]), 2).tolist() == [["a"], ["b"]]


def test_arrays_of_another_width_are_refused():
    with pytest.raises(InputError, match="2 in one call and 3 in another"):
        OutputForm.of(np.ones((4, 2))).read(np.ones((4, 3)), 4)


def test_a_rare_none_costs_one_guess_and_no_more():
    rng = np.random.default_rng(0)
    tables = [as_outputs((rng.random(4000) < p).astype(int).tolist(), 4000) for p in (0.2, 0.5)]
    event = choose_events(tables, Goal(8000, 0.05), rng)[0].event
    form, call = OutputForm.of(tables[0]), (rng.random(2000) < 0.2).astype(int).tolist()
    plain = event.counts(form.read(call, 2000))
    assert sum(plain) > 0
    assert event.counts(form.read([*call, None], 2001)) == plain
    assert event.counts(form.read([None, None], 2)) == (0, 0)


@pytest.mark.parametrize(
    "outputs",
    [[2**63, 2**63 + 1, -1], [2**53, 2**53 + 1, 0.5], [(2**63, 1), (2**63 + 1, -1)]],
    ids=["beyond a word", "beside a fraction", "in tuples"],
)
def test_integers_that_differ_stay_different(outputs):
    """NumPy makes float64 of a list of such integers, and a client that leaks in them passed."""
    table = as_outputs(outputs, len(outputs))
    assert len({tuple(row) for row in table.tolist()}) == len(outputs)


def test_integers_of_two_calls_stay_different():
    kinds = (np.array([[2**63], [2**63 + 1]], np.uint64), np.array([[-1]]))
    assert len(set(joined(kinds)[:, 0].tolist())) == 3
    assert joined([np.array([[1]]), np.array([[0.5]])]).dtype == np.float64


def test_outputs_too_large_for_the_audit_are_refused(tmp_path, monkeypatch):
    """Each call within its limit, those of many inputs took all memory."""
    code = "def wide(value, n, rng):\n    return rng.random((n, 50))\n"
    (tmp_path / "wide.py").write_text(code)
    monkeypatch.setattr(work, "_MOST_ENTRIES", 4_000)
    monkeypatch.setattr(work, "processes", lambda *_, **__: contextlib.nullcontext(Pool(1)))
    request = BlackBoxRequest("wide:wide", (0, 1), 400, path=(str(tmp_path),), processes=1)
    with pytest.raises(InputError, match="one takes 400 bytes, and 100 of each of 2 inputs"):
        audit_black_box(request)


def test_a_learnt_score_sees_all_entries_and_their_sum():
    table = np.array([[1, 2, 5], [0, -3, 4]])
    assert _with_sum(table).tolist() == [[1, 2, 5, 8], [0, -3, 4, 1]]


def test_the_test_of_two_laws_is_that_of_scipy():
    """Cells of one count, and of none, among others."""
    for pair in ([[1, 5, 9, 0], [4, 2, 1, 1]], [[1, 1, 3], [1, 4, 1]], [[30, 1], [25, 9]]):
        counts = np.array(pair, dtype=float)
        expected = chi2_contingency(counts, correction=False, lambda_="log-likelihood").pvalue
        assert _g_test(counts) == pytest.approx(expected)
    assert _g_test(np.array([[3.0, 0.0], [4.0, 0.0]])) == 1.0


def test_deviations_are_from_the_median_of_the_output():
    table = np.array([[1.0, 5.0, 9.0], [0.0, 7.0, 8.0]])
    bins = Bins(("= 0", "= 4"), values=np.array([0.0, 4.0]))
    view = View("deviations", (bins,) * 3)
    assert [view.codes(table, column).tolist() for column in range(3)] == [[0, 0], [1, 1], [2, 0]]
    assert View("entries", (bins,) * 3).codes(table, 0).tolist() == [0, 1]


def test_outputs_that_are_one_of_two_inputs_score_by_which():
    for first, second in (("a", "b"), ((1, 2), (3,)), (2, 7), (7, 2)):
        table = np.empty((3, 1), dtype=object if isinstance(first, str | tuple) else np.int64)
        other = 5 if isinstance(first, int) else "neither"
        table[:, 0] = [first, second, other]
        score = _named(table, first, second)
        codes = score.view.codes(table, 0)
        assert score.log_ratios[0][codes].tolist() == [1.0, -1.0, 0.0]


def test_of_whole_outputs_the_most_frequent_are_seen(monkeypatch):
    monkeypatch.setattr(events, "_ROWS_SEEN", 2)
    rows = [("a", "x")] * 5 + [("b", "x")] * 4 + [("c", "y")] * 3
    table = np.array(rows, dtype=object)
    (view,) = [one for one in fit_views([table, table]) if one.name == "outputs"]
    assert view.binnings[0].bins == 3
    assert view.codes(table, 0).tolist() == [1] * 5 + [2] * 4 + [0] * 3
