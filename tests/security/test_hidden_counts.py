"""Counts under ten cannot be computed back from what a result says."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from security.hidden_counts import LARGEST_HIDDEN, class_counts, small_counts

import ldpaudit
from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.held_out_guesses import HeldOutGuesses
from ldpaudit.audits.interface import AuditContext, Beside, Plan
from ldpaudit.audits.mechanism.audit import MechanismAudit
from ldpaudit.audits.mechanism.evidence import without_small_cells
from ldpaudit.audits.small_classes import large_classes, without_small_classes
from ldpaudit.audits.through_others.bounds import bound_estimates
from ldpaudit.audits.vectors.audit import VectorAudit, claimed
from ldpaudit.audits.vectors.seen import SeenVector
from ldpaudit.errors import InputError
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.mechanisms import from_declaration
from ldpaudit.release import (
    Declaration,
    FeatureTable,
    LabelDeclaration,
    Release,
    ReleasedLabels,
    ReleasedVector,
    TrueLabels,
    VectorDeclaration,
)
from ldpaudit.result import SMALLEST_CELL, Check, Estimate, Finding
from ldpaudit.result.hiding import lower_bound

CLASSES = "ABCDE"
RATE = 0.88
"""How often a label stays as it is at ε = 2."""


def labels_of(rng: np.random.Generator, small: int | None = None) -> np.ndarray:
    """Draw the true labels of a small table with one or two small classes."""
    k = int(rng.integers(2, 6))
    sizes = rng.integers(40, 80, size=k)
    for place in rng.choice(k, size=min(int(rng.integers(1, 3)), k - 1), replace=False):
        sizes[place] = rng.integers(1, SMALLEST_CELL) if small is None else small
    return rng.permutation(np.repeat(np.arange(k), sizes))


def released(rng: np.random.Generator, truth: np.ndarray, epsilon: float) -> np.ndarray:
    k = int(truth.max()) + 1
    kept = rng.random(len(truth)) < np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    return np.where(kept, truth, (truth + rng.integers(1, k, len(truth))) % k)


def audited(
    seed: int, *audits: str, features: bool = False
) -> tuple[np.ndarray, ldpaudit.AuditResult]:
    """Return the sizes of the true classes of a random small release, and its result."""
    rng = np.random.default_rng(seed)
    truth = labels_of(rng)
    answers, names = released(rng, truth, 1.0), np.array(list(CLASSES))
    columns = {"x": rng.normal(size=len(truth)) + truth} if features else {}
    table = pd.DataFrame({"label": names[answers], **columns})
    result = ldpaudit.audit(
        table,
        truth=pd.DataFrame({"label": names[truth]}),
        label="label",
        mechanism="rr",
        epsilon=1.0,
        only=audits,
        seed=seed,
    )
    return np.bincount(truth), result


def ambiguous(sizes: np.ndarray, result: ldpaudit.AuditResult) -> None:
    """Assert that nothing printed tells how many people a small class has."""
    printed = json.loads(result.to_json())
    assert small_counts(printed) == []
    for size, fitting in zip(sizes, class_counts(printed), strict=True):
        assert size in fitting
        if size < SMALLEST_CELL:
            assert len(fitting) > LARGEST_HIDDEN // 2, (size, fitting)


@pytest.mark.parametrize("seed", range(6))
def test_sizes_of_small_classes_fit_many_ways(seed: int) -> None:
    ambiguous(*audited(seed, "label-inference"))


@pytest.mark.validate
@pytest.mark.parametrize("features", [False, True])
def test_sizes_of_small_classes_fit_many_ways_in_many_releases(features: bool) -> None:
    audits = "label-inference", "mechanism", "power", "instance-loss"
    for seed in range(100, 400):
        ambiguous(*audited(seed, *audits, features=features))


def context_of(truth: np.ndarray, answers: np.ndarray, epsilon: float = 1.0) -> AuditContext:
    names = tuple(CLASSES[: int(max(truth.max(), answers.max())) + 1])
    n, empty = len(truth), np.empty((len(truth), 0), dtype=np.float32)
    release = Release(
        FeatureTable(empty, empty.astype(np.int32), (), 0),
        ReleasedLabels(answers.astype(np.int32)),
        names,
        names,
        TrueLabels(truth.astype(np.int32)),
        Declaration("randomized-response", {"classes": list(names), "epsilon": epsilon}),
    )
    assert len(release) == n
    return AuditContext(release, from_declaration(release.declaration, names), Plan(seed=1))


@pytest.mark.parametrize("seed", range(30))
def test_rows_that_are_looked_at_say_nothing_of_small_classes(seed: int) -> None:
    """How many rows are left, and of which classes, is the same for each size of a small class."""
    left = set()
    for size in range(SMALLEST_CELL):
        rng = np.random.default_rng(seed)
        truth = labels_of(rng)
        large = truth[np.bincount(truth)[truth] >= SMALLEST_CELL]
        k = int(truth.max()) + 1
        if (np.bincount(large, minlength=k) >= SMALLEST_CELL).sum() < 2:
            return
        small = np.argmin(np.bincount(large, minlength=k))
        codes = rng.permutation(np.r_[large, np.full(size, small)])
        kept = large_classes([(codes, k)])
        assert kept is not None
        counts = np.bincount(codes[kept], minlength=k)
        assert not any(0 < count < SMALLEST_CELL for count in counts)
        left.add(len(codes) - len(kept))
    assert len(left) == 1


def test_a_class_of_one_column_stays_large_where_people_of_another_are_left_out() -> None:
    first = np.repeat([0, 1, 2], [30, 30, 12])
    second = np.r_[np.repeat([0, 1], [30, 30]), np.full(8, 2), np.full(4, 1)]
    kept = large_classes([(first, 3), (second, 3)])
    assert kept is not None
    for codes in (first, second):
        assert not any(0 < count < SMALLEST_CELL for count in np.bincount(codes[kept]))
    assert (len(first) - len(kept)) % SMALLEST_CELL == 0


def test_two_classes_one_of_them_small_leave_the_truth_out() -> None:
    truth = np.repeat([0, 1], [90, 4])
    context, notes = without_small_classes(context_of(truth, truth))
    assert context.release.truth is None
    assert "not used" in notes[0].text
    assert "give the labels again changes nothing" in notes[0].text


def test_who_is_left_out_is_not_what_the_answer_is_about() -> None:
    truth = np.repeat([0, 1, 2], [90, 60, 7])
    _, notes = without_small_classes(context_of(truth, truth))
    assert "10 of 157 rows" in notes[0].text
    assert "is about the other rows alone" in notes[0].text


@pytest.mark.parametrize("sizes", [(60, 40, 0), (0, 90, 60), (90, 0, 60, 0)])
def test_what_was_released_of_a_small_class_looks_like_the_largest(sizes: tuple[int, ...]) -> None:
    """What the others' numbers lack of the release is the same for each number of rare labels."""
    few = [y for y, size in enumerate(sizes) if not size]
    truth = np.repeat(np.arange(len(sizes)), [size or 4 for size in sizes])
    answers = released(np.random.default_rng(1), truth, 3.0)
    context, notes = without_small_classes(context_of(truth, answers, 3.0))
    channel, release = aligned_channel(context), context.release
    assert "counts as that of the largest class" in notes[0].text
    assert channel is not None
    assert not {CLASSES[y] for y in few} & {*release.classes, *release.outputs}
    assert (release.classes, release.outputs) == (channel.classes, channel.outputs)
    largest = np.argmax(sizes)
    everyone = channel.finest
    rows = {label: everyone.matrix[y] for y, label in enumerate(everyone.classes)}
    into = [channel.outputs.index(context.counts_as.get(z, z)) for z in everyone.outputs]
    seen = {y: np.bincount(into, row, minlength=len(channel.outputs)) for y, row in rows.items()}
    for y in few:
        assert seen[CLASSES[y]] == pytest.approx(seen[CLASSES[largest]], rel=1e-12)
    assert [context.number(y) for y in range(len(release.classes))] == [
        y + 1 for y, size in enumerate(sizes) if size
    ]


def test_each_of_several_columns_lacks_people_of_its_largest_class_beside_the_rare() -> None:
    """And its rare label counts as that class's; of a column without one nothing does."""
    rng, left = np.random.default_rng(2), []
    for size in (1, 9):
        truth = np.r_[np.repeat([0, 1], [90, 60]), np.full(size, 2)], rng.integers(0, 2, 150 + size)
        columns = [context_of(codes, released(rng, codes, 2.0), 2.0).release for codes in truth]
        seen = SeenVector.of(
            ReleasedVector(tuple(columns), ((), ())), None, AuditContext(columns[0], None, Plan(1))
        )
        first, second = seen.contexts
        assert first.counts_as == {"C": "A"}
        assert first.release.outputs == ("A", "B")
        assert not second.counts_as
        left.append(150 + size - len(first.release))
        assert np.bincount(first.truth)[1] == 60
        channel = seen.matrices(0)
        assert channel is not None
        assert channel.shape == (1, 2, 2)
    assert left[0] == left[1] == 10


def test_a_comparison_is_told_whose_released_labels_count_as_another() -> None:
    truth, told = np.repeat([0, 1, 2], [300, 200, 5]), []
    for answers in (released(np.random.default_rng(1), truth, 1.0), truth):
        guesses = HeldOutGuesses()
        without_small_classes(replace(context_of(truth, answers, 1.0), guesses=guesses))
        told.append(dict(guesses.counts_as))
    assert told == [{CLASSES[2]: CLASSES[0]}, {}]


def test_noise_that_a_group_shares_refutes_no_claim() -> None:
    """Ten rows of each person have one answer: as many rows of their own would refute the claim."""
    truth = np.repeat([0, 1, 2], [200, 140, 2])
    answers = released(np.random.default_rng(1), truth, 1.0)
    rows = np.r_[np.repeat(np.arange(340), 10), 340, 341]
    context = context_of(truth[rows], answers[rows], 1.0)
    assert not without_small_classes(context)[0].counts_as
    stated = replace(context, release=replace(context.release, groups=rows))
    assert without_small_classes(stated)[0].counts_as


def test_a_leak_through_the_label_of_a_small_class_is_found() -> None:
    """Of two large classes one is never released as the small one: ε is infinite."""
    truth = np.repeat([0, 1, 2], [2500, 2500, 5])
    answers = released(np.random.default_rng(1), truth, 1.0)
    answers[(truth == 0) & (answers == 2)] = 0
    context, _ = without_small_classes(context_of(truth, answers, 1.0))
    assert not context.counts_as
    estimates = {e.id: e.value for e in MechanismAudit().run(context).estimates}
    assert estimates["mechanism.epsilon_lower"] > 1.5


@pytest.mark.parametrize(("excess", "found"), [(0.0, (0, 6)), (1.0, (40, 40))])
def test_labels_that_count_as_others_are_judged_by_the_claim(
    excess: float, found: tuple[int, int]
) -> None:
    """Of 40 honest releases at most 6 give a p-value of 0.05; a larger ε is found each time."""
    rng, refuted, above = np.random.default_rng(3), 0, 0
    truth = np.repeat([0, 1, 2, 3], [900, 600, 500, 6])
    for _ in range(40):
        context, _ = without_small_classes(
            context_of(truth, released(rng, truth, 1.0 + excess), 1.0)
        )
        estimates = {e.id: e for e in MechanismAudit().run(context).estimates}
        refuted += estimates["mechanism.channel_consistency"].value <= 0.05
        above += estimates["mechanism.epsilon_lower"].value > 1.0
    low, high = found
    assert low <= refuted <= high
    assert low <= above <= high


@pytest.mark.parametrize("tail", [0.025, 1e-3, 1e-5])
@pytest.mark.parametrize("n", [100, 173, 400, 999, 1000, 5000, 50_000])
def test_a_share_of_few_people_is_the_same_for_each_number_of_them(n: int, tail: float) -> None:
    for counts in (range(1, SMALLEST_CELL), range(n - LARGEST_HIDDEN, n)):
        printed = set()
        for count in counts:
            ends = float(trials_lower(count, n, tail)), float(trials_upper(count, n, tail))
            found = {"unit": "proportion", "n": n, "count": count}
            e = Estimate.interval("a", "A", count / n, ends, 0.95, **found)
            assert e.low <= ends[0]
            assert e.high >= ends[1]
            printed.add(e.model_dump_json())
        assert len(printed) == 1


def mechanism_of(table: np.ndarray, epsilon: float) -> str:
    """Return what the audit of the mechanism prints of counts by true and released label."""
    order = np.random.default_rng(1).permutation(table.sum())
    truth = np.repeat(np.repeat([0, 1], 2), table.ravel())[order]
    answers = np.repeat(np.tile([0, 1], 2), table.ravel())[order]
    finding = MechanismAudit().run(context_of(truth, answers, epsilon))
    shown = Evidence.collect([finding], epsilon).bounds
    return str([finding.estimates, {name: bound(0.01) for name, bound in shown.items()}])


@pytest.mark.parametrize(
    ("rows", "other", "epsilon"), [((120, 90), 6, 3.0), ((700, 300), 7, 4.5), ((400, 600), 9, 4.5)]
)
def test_a_small_joint_count_fits_many_ways(
    rows: tuple[int, int], other: int, epsilon: float
) -> None:
    """True sizes and released labels are known; one count decides the whole table."""
    printed: dict[str, list[int]] = {}
    for cell in range(1, SMALLEST_CELL):
        second = other + cell - 5
        table = np.array([[rows[0] - cell, cell], [second, rows[1] - second]])
        printed.setdefault(mechanism_of(table, epsilon), []).append(cell)
    assert min(map(len, printed.values())) > 1, list(printed.values())


def vector_with(cell: int, rows: tuple[int, int], second: int) -> ReleasedVector:
    """Return two private columns, ``cell`` people with the second label of the first one alone.

    Sizes of labels, and how often each is released as which, are the same for every count.
    """
    sizes = [rows[0] - second - cell, second + cell, cell, rows[1] - cell]
    truth = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], sizes, axis=0)
    noisy = np.empty_like(truth)
    for place, label in itertools.product((0, 1), (0, 1)):
        people = np.flatnonzero(truth[:, place] == label)
        people = np.random.default_rng((place, label)).permutation(people)
        kept = round(len(people) * RATE)
        noisy[people[:kept], place], noisy[people[kept:], place] = label, 1 - label
    columns = truth.astype(np.int32), noisy.astype(np.int32)
    order = np.random.default_rng(1).permutation(len(truth))
    labels, answers = (column[order] for column in columns)
    stated = Declaration("randomized-response", {"classes": ["A", "B"], "epsilon": 2.0})
    parts = []
    for place in (0, 1):
        features = FeatureTable(
            np.empty((len(order), 0), np.float32), answers[:, [1 - place]], (2,), 1
        )
        parts.append(
            Release(
                features,
                ReleasedLabels(answers[:, place]),
                ("A", "B"),
                ("A", "B"),
                TrueLabels(labels[:, place]),
                stated,
            )
        )
    both = VectorDeclaration(tuple(LabelDeclaration(name, stated) for name in "ab"))
    return ReleasedVector(tuple(parts), ((0,), (0,)), both)


def printed_of_both(vector: ReleasedVector) -> list[str]:
    """Return each number that the audits of two columns together print."""
    first = vector.columns[0]
    claim = from_declaration(first.declaration, first.classes)
    beside = Beside(vector, 0, claimed(vector))
    context = AuditContext(first, claim, Plan(seed=1), beside=beside)
    found = [VectorAudit().run(context), Finding(tuple(bound_estimates(context, beside)))]
    evidence = Evidence.collect(found, 4.0)
    shown = [one.model_dump_json() for one in evidence.estimates.values()]
    return [*shown, f"bound {evidence.bounds['vector.epsilon_lower'](0.01)}"]


@pytest.mark.parametrize(
    ("rows", "second", "cells"),
    [
        ((120, 90), 25, (1, 5)),
        *(
            pytest.param(rows, second, range(1, SMALLEST_CELL), marks=pytest.mark.validate)
            for rows, second in [((120, 90), 25), ((300, 250), 60), ((520, 180), 40)]
        ),
    ],
)
def test_a_small_count_of_two_private_columns_fits_many_ways(
    rows: tuple[int, int], second: int, cells: Sequence[int]
) -> None:
    """All sums are known; how many people have both labels decides the whole table."""
    fitting: dict[str, list[int]] = {}
    for cell in cells:
        shown = printed_of_both(vector_with(cell, rows, second))
        assert any('"suppressed":true' in one for one in shown)
        fitting.setdefault("\n".join(shown), []).append(cell)
    assert min(map(len, fitting.values())) > 1, list(fitting.values())


def test_small_joint_counts_are_nine_where_bounds_are_shown() -> None:
    counts = np.array([[80, 3, 0], [2, 40, 12], [0, 12, 50]])
    blurred = without_small_cells(counts)
    assert not ((blurred > 0) & (blurred < LARGEST_HIDDEN)).any()
    assert (blurred.sum(axis=0) == counts.sum(axis=0)).all()
    assert (blurred.sum(axis=1) == counts.sum(axis=1)).all()


def test_messages_count_few_people_as_few() -> None:
    answers = pd.DataFrame({"label": ["A", "B"] * 50})
    truth = pd.DataFrame({"label": [None, None, None, *["A", "B"] * 48, "B"]})
    with pytest.raises(InputError, match="fewer than 10 of 100 are missing"):
        ldpaudit.audit(answers, truth=truth, label="label", mechanism="rr", epsilon=1.0)


def test_a_bound_that_lies_above_a_limit_is_shown_above_it() -> None:
    assert lower_bound(1.04, 0.1, 1.0) == 1.01
    assert lower_bound(1.0000001, 0.1, 1.0) > 1.0
    # The ε of a channel made for ε = 1: a bound shown as 1 would lie above it by a rounding error.
    assert lower_bound(1.04, 0.1, 0.9999999999999929) == pytest.approx(1.01)
    assert lower_bound(0.99, 0.1, 1.0) == 0.9
    for value in np.random.default_rng(1).uniform(0, 3, 200):
        shown = lower_bound(value, 0.1, 1.05)
        assert shown <= value
        assert (shown > 1.05) == (value > 1.05)


def test_a_check_is_decided_on_all_counts_and_shown_rounded() -> None:
    """An attack that is right but for four of 400 people fails a limit of 0.9."""
    found = {"unit": "proportion", "n": 400, "count": 396}
    best = Estimate.interval("attack.best.accuracy", "A", 0.99, (0.97, 0.998), 0.95, **found)
    evidence = Evidence.collect([Finding((best,), bounds={best.id: lambda _: 0.9731})])
    check = Check(
        id="label-inference-accuracy",
        question="?",
        limit=0.9,
        observed=0.9731,
        side="lower",
        verdict="fail",
        level="error",
        confidence=0.95,
        p_value=3.217e-5,
        evidence=(best.id,),
    )
    shown = evidence.shown(check)
    assert (shown.verdict, shown.observed, shown.p_value) == ("fail", 0.91, 1e-4)


def test_who_is_left_out_of_a_large_class_cannot_be_drawn_again() -> None:
    truth = np.repeat([0, 1, 2], [200, 100, 3])
    other = truth[np.r_[0:200, 299:199:-1, 300:303]].copy()
    other[[200, 300]] = other[[300, 200]]
    left = [np.setdiff1d(np.flatnonzero(t == 0), large_classes([(t, 3)])) for t in (truth, other)]
    assert len(left[0]) == len(left[1]) == 7
    assert set(left[0]) != set(left[1])


def in_half(auc: float, rows: tuple[int, int], people: int, error: float) -> set[int]:
    """Return each number of people of a class in the first fold that fits an AUC.

    Of each fold it is a whole number of halves by the product of both classes' people in it.
    """
    found = set()
    for first in range(1, people):
        pairs = [2 * p * (n - p) for p, n in zip((first, people - first), rows, strict=True)]
        ranked = np.arange(pairs[0] + 1) / pairs[0] * rows[0] / sum(rows)
        rest = (auc - ranked) * sum(rows) / rows[1] * pairs[1]
        apart = error * sum(rows) / rows[1] * pairs[1]
        near = abs(rest - rest.round())[(rest > -0.5) & (rest < pairs[1] + 0.5)]
        if (near <= apart).any():
            found.add(first)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_how_many_of_a_class_are_in_half_of_the_file_is_not_told(seed: int) -> None:
    """Who is in which half follows from the seed, which is printed: it is a slice."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat([0, 1], [108, 12]))
    kept = rng.random(120) < np.e / (1 + np.e)
    table = {"x": rng.normal(truth, 1.0), "label": np.where(kept, truth, 1 - truth)}
    told = {"epsilon": 1.0, "only": ("label-inference",), "budget": 0.01, "seed": seed}
    result = ldpaudit.audit(pd.DataFrame(table), truth, "rr", threads=1, **told)
    one = result.estimate("attack.features-only.auc")
    assert one is not None
    assert one.value == round(one.value, 2)
    assert len(in_half(one.value, (60, 60), 12, 0.005)) > 4
    for one in result.estimates:
        assert ".class-2." not in one.id or one.suppressed
