"""Running every attack on both halves of a release: fitted on one, scored on the other."""

from dataclasses import dataclass, replace

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
from ldpaudit.audits.models import cross_fitted_posterior, half_model
from ldpaudit.datasets.beside.slices import joint_slices
from ldpaudit.randomness import seed_from
from ldpaudit.release import IndexArray, IntArray, Release

_MOST_FITTED_ROWS = 100_000
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
        Right guesses on rows that the attack was fitted on (in-sample), at most 100,000 a fold; 0
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
class _Fold:
    """One direction of the cross-fitting."""

    knowledge: Knowledge
    fitting: Release
    held_out: Release
    baseline: IntArray
    slices: IntArray | None
    rows: IndexArray
    half: int


def run_attacks(context: AuditContext) -> tuple[list[AttackRun], LeftOut]:
    """Fit and score every available attack that the budget allows, on both folds.

    The release has true labels. Runs are in order of the attacks' cost.
    """
    placed = replace(context.release, places=np.arange(len(context.release)))
    context = replace(context, release=placed)
    folds = [_fold(context, half) for half in (0, 1)]
    candidates, unfit = candidate_attacks(context, [fold.knowledge for fold in folds])
    if context.guesses is not None:
        candidates = without_learners_from_asked(candidates, unfit, _NOT_PAIRED)

    def run(name: str, attacks: list[Attack]) -> AttackRun:
        return kept_run(context, name, AttackRun, lambda: _run(context, folds, name, attacks))

    return run_affordable(context, candidates, unfit, run)


def _fold(context: AuditContext, half: int) -> _Fold:
    """Return the fold that fits on ``half`` and scores on the other."""
    posterior = cross_fitted_posterior(context, "truth")
    rows, others = context.half(half), context.half(1 - half)
    fitting, held_out = context.release.take(rows), context.release.take(others)
    rng = context.rng("label-inference", "shared", str(half))
    channel = attackers_channel(context, rows)
    knowledge = knowledge_of(context, channel, seed_from(rng))
    model = SharedModel(half_model(context, "truth", half))
    model.remember(held_out.features, posterior[others])
    knowledge.share(SHARED_KEY, model)
    guesses = posterior[others].argmax(axis=1).astype(np.int32)
    slices = joint_slices(context.plan.slices, others)
    return _Fold(knowledge, fitting, held_out, guesses, slices, others, half)


def _run(context: AuditContext, folds: list[_Fold], name: str, attacks: list[Attack]) -> AttackRun:
    scores, correct, n = [], 0, 0
    for half, (attack, fold) in enumerate(zip(attacks, folds, strict=True)):
        rng = context.rng("label-inference", name, str(half))
        attack.fit(as_seen_by(attack, fold.fitting), rng)
        scores.append(_held_out_score(context, attack, fold, rng))
        right, rows = _fitted_score(attack, fold, rng)
        correct, n = correct + right, n + rows
    given_release = attacks[0].learns_from_asked
    title, uses = attacks[0].title, attacks[0].uses_release
    return AttackRun(name, title, uses, tuple(scores), correct, n, given_release)


def _held_out_score(
    context: AuditContext, attack: Attack, fold: _Fold, rng: np.random.Generator
) -> FoldScore:
    # The same rows are asked about in every release, so that they can be paired.
    drawing = context.rng("label-inference", "asked", attack.name, str(fold.half))
    rows = _asked(attack, fold.held_out, drawing)
    asked = fold.held_out if rows is None else fold.held_out.take(rows)
    baseline = fold.baseline if rows is None else fold.baseline[rows]
    assert asked.truth is not None
    posterior = attack.posterior(without_truth(asked))
    if context.guesses is not None:
        places = fold.rows if rows is None else fold.rows[rows]
        right = posterior.argmax(axis=1) == asked.truth
        context.guesses.record(attack.name, places, right, context.halves())
    return score_fold(
        asked.truth,
        posterior,
        baseline if attack.uses_release else None,
        rate_alpha=(1 - context.plan.confidence) / 2,
        rng=rng,
        slices=fold.slices if rows is None or fold.slices is None else fold.slices[rows],
        alike=not attack.learns_from_asked,
    )


def _fitted_score(attack: Attack, fold: _Fold, rng: np.random.Generator) -> tuple[int, int]:
    if not attack.uses_release or attack.learns_from_asked:
        return 0, 0
    rows = _asked(attack, fold.fitting, rng, _MOST_FITTED_ROWS)
    asked = fold.fitting if rows is None else fold.fitting.take(rows)
    assert asked.truth is not None
    guesses = attack.posterior(without_truth(asked)).argmax(axis=1)
    return int((guesses == asked.truth).sum()), len(asked)


def _asked(
    attack: Attack, release: Release, rng: np.random.Generator, most: int | None = None
) -> IndexArray | None:
    """Return a random sample of rows where the attack is too slow for all, else None."""
    limits = [limit for limit in (attack.most_rows, most) if limit is not None]
    if not limits or len(release) <= min(limits):
        return None
    return np.sort(rng.choice(len(release), size=min(limits), replace=False))
