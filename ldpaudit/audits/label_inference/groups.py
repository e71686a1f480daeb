"""The strongest attack's scores for each class, and for each slice that the user asked for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

import numpy as np

from ldpaudit.attacks.scoring.fold import Counts
from ldpaudit.attacks.scoring.measures import (
    ACCURACY,
    ADVANTAGE,
    Measure,
    gain_lower,
    is_decided,
)
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.label_inference.estimates import BEST, BEST_TITLE, GIVEN, score_id
from ldpaudit.audits.label_inference.references import AUDIT_ID
from ldpaudit.audits.label_inference.runs import AttackRun
from ldpaudit.datasets.beside.slices import Slices
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.result import Details, Estimate, Note, Score

MOST_CLASSES = 20
"""With more classes none is shown separately."""


@dataclass(frozen=True)
class _Group:
    """One group of rows: for each fold its rows, right guesses, gained and lost ones."""

    key: str
    title: str
    words: str
    folds: tuple[tuple[int, int, int, int], ...]

    @property
    def rows(self) -> int:
        return sum(fold[0] for fold in self.folds)


def class_estimates(
    context: AuditContext, run: AttackRun, attacks: int
) -> tuple[list[Estimate], list[Note]]:
    """Return how many people of each class the strongest attack guesses right.

    Every interval holds at once with all others, and for whichever of the attacks is the strongest.
    The number of people in a class depends on their true labels, so only an attack that learns
    nothing from the rows it guesses can be scored this way.
    """
    k = len(context.release.classes)
    if k > MOST_CLASSES:
        text = f"With {k} classes the strongest attack is not scored for each class separately."
        return [], [Note.info(AUDIT_ID, text)]
    groups = []
    for y in range(k):
        counts = [(int(fold.class_rows[y]), int(fold.class_correct[y]), 0, 0) for fold in run.folds]
        title = f"class {context.release.classes[y]}"
        words = f"people of {title}"
        groups.append(_Group(f"class-{y + 1}", title, words, tuple(counts)))
    return _accuracies(run, groups, context.plan.confidence, attacks), []


def slice_estimates(
    context: AuditContext, run: AttackRun, attacks: int
) -> tuple[list[Estimate], list[Note]]:
    """Return accuracy and advantage of the strongest attack in each slice, and what slices are."""
    confidence, slices = context.plan.confidence, context.plan.slices
    estimates: list[Estimate] = []
    notes: list[Note] = []
    for place, column in enumerate(slices):
        groups = _groups(run, slices, place)
        estimates += _accuracies(run, groups, confidence, attacks)
        estimates += _advantages(run, groups, confidence, attacks)
        named = (f"{i + 1}: {name}" for i, name in enumerate(column.names))
        text = f"Slices {place + 1} are by the column {column.column}: {'; '.join(named)}."
        notes.append(Note.info(AUDIT_ID, text))
    return estimates, notes


def _groups(run: AttackRun, slices: Sequence[Slices], place: int) -> list[_Group]:
    shape = [len(column) for column in slices]
    others = tuple(i for i in range(len(shape)) if i != place)
    tables = [_padded(fold.slices, shape).sum(axis=others) for fold in run.folds]
    return [
        _Group(
            f"slice-{place + 1}-{i + 1}",
            f"column {place + 1}, slice {i + 1}",
            f"rows of slice {i + 1}",
            tuple((int(t[i, 0]), int(t[i, 1]), int(t[i, 2]), int(t[i, 3])) for t in tables),
        )
        for i in range(shape[place])
    ]


def _padded(counts: Counts, shape: list[int]) -> Counts:
    table = np.zeros((int(np.prod(shape)), 4), dtype=np.int64)
    table[: len(counts)] = counts
    return table.reshape(*shape, 4)


def _accuracies(
    run: AttackRun,
    groups: Sequence[_Group],
    confidence: float,
    attacks: int,
) -> list[Estimate]:
    tail = _tail(groups, confidence, attacks)
    return [
        _estimate(
            group,
            ACCURACY,
            sum(fold[1] for fold in group.folds) / group.rows,
            (
                _average(group, lambda n, right, *_: trials_lower(right, n, tail)),
                _average(group, lambda n, right, *_: trials_upper(right, n, tail)),
            ),
            confidence,
            count=sum(fold[1] for fold in group.folds),
            method=_method(run, group, len(groups), attacks),
        )
        for group in groups
        if group.rows
    ]


def _advantages(
    run: AttackRun,
    groups: Sequence[_Group],
    confidence: float,
    attacks: int,
) -> list[Estimate]:
    tail = _tail(groups, confidence, attacks)
    decided = all(is_decided(fold) for fold in run.folds)
    lower = partial(gain_lower, decided=decided)
    estimates = []
    for group in groups:
        gained, lost = (sum(fold[i] for fold in group.folds) for i in (2, 3))
        if not group.rows:
            continue
        estimates.append(
            _estimate(
                group,
                ADVANTAGE,
                (gained - lost) / group.rows,
                (
                    _average(group, lambda n, _, g, b: lower(g, b, n, tail)),
                    _average(group, lambda n, _, g, b: -lower(b, g, n, tail)),
                ),
                confidence,
                method=_method(run, group, len(groups), attacks),
            )
        )
    return estimates


def _estimate(
    group: _Group,
    measure: Measure,
    value: float,
    ends: tuple[float, float],
    level: float,
    **details: Unpack[Details],
) -> Estimate:
    title, column = group.title, measure.title
    score = Score(subject=BEST, measure=measure.name, row=title, column=column, group=group.key)
    details |= {"score": score, "unit": "proportion", "n": group.rows}
    named = score_id(score), f"{BEST_TITLE}, {score.title}"
    return Estimate.interval(*named, value, ends, level, **details)


def _tail(groups: Sequence[_Group], confidence: float, attacks: int) -> float:
    return (1 - confidence) / 2 / (2 * len(groups) * attacks)


def _average(group: _Group, bound: Callable[[int, int, int, int], Any]) -> float:
    return float(sum(f[0] / group.rows * float(bound(*f)) for f in group.folds if f[0]))


def _method(run: AttackRun, group: _Group, groups: int, attacks: int) -> str:
    return (
        f"{run.name}, chosen among {attacks} attacks, on {group.words}; on each of two folds, "
        f"error probability divided by {groups} groups and {attacks} attacks"
        + (GIVEN if run.given_release else "")
    )
