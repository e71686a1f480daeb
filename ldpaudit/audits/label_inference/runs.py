"""Running every attack on both halves of a release: fitted on one, scored on the other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ldpaudit.attacks.interface import (
    Attack,
    Knowledge,
    SharedModel,
    as_seen_by,
    without_truth,
)
from ldpaudit.attacks.models.truth import SHARED_KEY
from ldpaudit.attacks.scoring.fold import FoldScore, score_fold
from ldpaudit.audits.claimed_channel import attackers_channel
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.label_inference.budget import (
    LeftOut,
    candidate_attacks,
    knowledge_of,
    run_affordable,
    without_learners_from_asked,
)
from ldpaudit.audits.label_inference.kept import kept_run
from ldpaudit.audits.label_inference.needless import Needless
from ldpaudit.audits.models import (
    fit_halves,
    half_model,
    held_out_posterior,
    learning_rows,
    side_by_side,
)
from ldpaudit.datasets.beside.slices import joint_slices
from ldpaudit.estimators.assumptions.clusters import one_of_each
from ldpaudit.randomness import seed_from
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray, Release, TrueLabels

MOST_SCORED: Final = 250_000
"""Rows of each half that attacks are scored on: of more, a random sample."""
_MOST_FITTED_ROWS: Final = 25_000
_NOT_PAIRED = (
    "it learns from the rows it guesses, and a comparison pairs guesses of rows that were not seen"
)


@dataclass(frozen=True)
class AttackRun:
    """How one attack did.

    Attributes
    ----------
    name, title : str
        Its stable name, and what people call it.
    uses_release : bool
        Whether it is an attack rather than a reference.
    folds : tuple of FoldScore
        Two held-out folds.
    fitted_correct, fitted_n : int
        Right guesses on rows that the attack was fitted on (in-sample), at most 25,000 a fold; 0
        where that is not measured.
    given_release : bool
        Whether it learns from the rows that it guesses: scores are then bounded given the release.
    """

    name: str
    title: str
    uses_release: bool
    folds: tuple[FoldScore, ...]
    fitted_correct: int
    fitted_n: int
    given_release: bool = False


@dataclass(frozen=True)
class Fold:
    """One direction of the cross-fitting.

    Attributes
    ----------
    knowledge : Knowledge
    fitting, held_out, again : Release
        Rows to learn from, rows to guess, and some of those learnt from, to guess too.
    rows : int64 array
        The places of the held-out rows in the release.
    posterior : float64 array of shape (held-out rows, k)
        P(y | x) by the model of the true labels.
    baseline : int32 array
        The guesses of that model.
    slices : int32 array or None
    half : int
        Which half is learnt from.
    scored : bool array or None
        Of the held-out rows those that are scored; None: all.
    """

    knowledge: Knowledge
    fitting: Release
    held_out: Release
    again: Release
    rows: IndexArray
    posterior: FloatArray
    baseline: IntArray
    slices: IntArray | None
    half: int
    scored: BoolArray | None = None


def folds_of(context: AuditContext) -> list[Fold]:
    """Return both folds of a release with true labels, models of which are fitted here."""
    placed = replace(context.release, places=np.arange(len(context.release)))
    fit_halves(context, "truth")
    return [_fold(context, placed, half) for half in (0, 1)]


def run_attacks(context: AuditContext, folds: Sequence[Fold]) -> tuple[list[AttackRun], LeftOut]:
    """Fit and score every available attack that the plan allows, on both folds.

    Runs are in order of the attacks' cost.
    """
    candidates, left_out = candidate_attacks(
        context, folds[0].fitting, [f.knowledge for f in folds]
    )
    if context.guesses is not None:
        candidates = without_learners_from_asked(candidates, left_out, _NOT_PAIRED)
    needless = Needless.of(context, folds[0].knowledge.channel, [f.posterior for f in folds])

    def run(name: str, attacks: list[Attack]) -> AttackRun:
        return kept_run(context, name, AttackRun, lambda: _run(context, folds, name, attacks))

    return run_affordable(context, candidates, left_out, run, needless)


def _fold(context: AuditContext, placed: Release, half: int) -> Fold:
    """Return the fold that fits on ``half`` and scores on the other."""
    rows = learning_rows(context, half)
    names = "label-inference", "scored", str(half)
    others = context.sample(context.half(1 - half), MOST_SCORED, *names)
    fitting, held_out = placed.take(rows), placed.take(others)
    posterior = held_out_posterior(context, half, others)
    rng = context.rng("label-inference", "shared", str(half))
    # Of few rows the channel is counted on all of the half.
    channel = attackers_channel(context, rows)
    knowledge = knowledge_of(context, channel, seed_from(rng), placed.released)
    model = SharedModel(half_model(context, "truth", half))
    model.remember(held_out.features, posterior)
    knowledge.share(SHARED_KEY, model)
    again = context.sample(
        np.arange(len(rows)), _MOST_FITTED_ROWS, "label-inference", "again", str(half)
    )
    return Fold(
        knowledge=knowledge,
        fitting=fitting,
        held_out=held_out,
        again=fitting if len(again) == len(rows) else fitting.take(again),
        rows=others,
        posterior=posterior,
        baseline=posterior.argmax(axis=1).astype(np.int32),
        slices=joint_slices(context.plan.slices, others),
        half=half,
        scored=one_of_each_group(context, others, str(half)),
    )


def one_of_each_group(context: AuditContext, rows: IndexArray, name: str) -> BoolArray | None:
    """Return which of the rows are scored, bool of shape (n,): one of each stated group.

    Rows of one person or household go together, and an interval would count them as so many people.
    None where no groups are stated.
    """
    groups = context.release.groups
    if groups is None:
        return None
    scored = np.zeros(len(rows), dtype=np.bool_)
    scored[one_of_each(groups[rows], context.rng("label-inference", "group", name))] = True
    return scored


def _run(
    context: AuditContext, folds: Sequence[Fold], name: str, attacks: list[Attack]
) -> AttackRun:
    pairs = list(zip(attacks, folds, strict=True))
    found = list(side_by_side(context).map(_run_fold, pairs, shared=context))
    scores, right, rows = zip(*found, strict=True)
    first = attacks[0]
    return AttackRun(
        name,
        first.title,
        first.uses_release,
        tuple(scores),
        sum(right),
        sum(rows),
        first.learns_from_asked,
    )


def _run_fold(pair: tuple[Attack, Fold], context: AuditContext) -> tuple[FoldScore, int, int]:
    """Return one fold's score, and how many of how many rows learnt from it guesses right."""
    attack, fold = pair
    rng = context.rng("label-inference", attack.name, str(fold.half))
    attack.fit(as_seen_by(attack, fold.fitting), rng)
    return _held_out_score(context, attack, fold, rng), *_fitted_score(attack, fold, rng)


def _held_out_score(
    context: AuditContext, attack: Attack, fold: Fold, rng: np.random.Generator
) -> FoldScore:
    # The same rows are asked about in every release, so that they can be paired.
    drawing = context.rng("label-inference", "asked", attack.name, str(fold.half))
    rows = _asked(attack, fold.held_out, drawing)
    asked = fold.held_out if rows is None else fold.held_out.take(rows)
    assert asked.truth is not None
    posterior, truth = attack.posterior(without_truth(asked)), asked.truth
    rows = np.arange(len(fold.held_out)) if rows is None else rows
    if fold.scored is not None:
        kept = np.flatnonzero(fold.scored[rows])
        posterior, rows = posterior[kept], rows[kept]
        truth = TrueLabels(truth[kept])
    if context.guesses is not None:
        right = posterior.argmax(axis=1) == truth
        context.guesses.record(attack.name, fold.rows[rows], right, context.halves())
    return score_fold(
        truth,
        posterior,
        fold.baseline[rows] if attack.uses_release else None,
        rate_alpha=(1 - context.plan.confidence) / 2,
        rng=rng,
        slices=None if fold.slices is None else fold.slices[rows],
        alike=not attack.learns_from_asked,
    )


def _fitted_score(attack: Attack, fold: Fold, rng: np.random.Generator) -> tuple[int, int]:
    if not attack.uses_release or attack.learns_from_asked:
        return 0, 0
    rows = _asked(attack, fold.again, rng)
    asked = fold.again if rows is None else fold.again.take(rows)
    assert asked.truth is not None
    guesses = attack.posterior(without_truth(asked)).argmax(axis=1)
    return int((guesses == asked.truth).sum()), len(asked)


def _asked(attack: Attack, release: Release, rng: np.random.Generator) -> IndexArray | None:
    """Return a random sample of rows where the attack is too slow for all, else None."""
    if attack.most_rows is None or len(release) <= attack.most_rows:
        return None
    return np.sort(rng.choice(len(release), size=attack.most_rows, replace=False))
