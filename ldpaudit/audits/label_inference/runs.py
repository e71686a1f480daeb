"""Running every attack on both halves of a release: fitted on one, scored on the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

import numpy as np

from ldpaudit.attacks import available_attacks, built_in_attacks, create_attack, given_attacks
from ldpaudit.attacks.interface import (
    Attack,
    Knowledge,
    SharedModel,
    as_seen_by,
    missing_need,
    without_truth,
)
from ldpaudit.attacks.model_attack import TRUTH_MODEL
from ldpaudit.attacks.scoring import FoldScore, score_fold
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import (
    attackers_channel,
    fit_halves,
    half_model,
    held_out_posterior,
    learning_rows,
    side_by_side,
    threads_of_each,
)
from ldpaudit.audits.scores import Scored
from ldpaudit.datasets.groups import joint_slices
from ldpaudit.errors import AttackError, InputError, InsufficientDataError, LdpAuditError
from ldpaudit.estimators.assumptions.clusters import one_of_each
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.randomness import seed_from
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray, Release, TrueLabels
from ldpaudit.work.progress import Stopped

T = TypeVar("T")

# Rows of each half that attacks are scored on: of more, a random sample.
MOST_SCORED: Final = 250_000
_MOST_FITTED_ROWS: Final = 25_000
_NOT_PAIRED = (
    "it learns from the rows it guesses, and a comparison pairs guesses of rows that were not seen"
)


@dataclass
class LeftOut:
    """Attacks that did not run."""

    unfit: dict[str, str] = field(default_factory=dict)
    """Why those that do not apply to the release, or failed on it, did not run."""
    broken: dict[str, str] = field(default_factory=dict)
    """Why attacks of others that were expected to run did not: a warning for each."""
    stopped: tuple[str, ...] = ()
    """Those that the end of the audit's time left out."""
    possible: int = 1
    """How many attacks, references apart, could have run: fixed before any was scored, so what is
    said of the strongest is corrected for choosing among so many."""


def run_each(
    context: AuditContext,
    release: Release,
    knowledge: Sequence[Knowledge],
    run: Callable[[str, list[Attack]], T],
    blind: str | None = None,
) -> tuple[list[T], LeftOut]:
    """Return what ``run`` gives for every attack that applies, and what did not run.

    Where the audit ends early, what has run is kept.
    ``release``: what is learnt from. ``knowledge``: of each fold. ``run``: takes a name, and an
    attack for each fold. ``blind``: why attacks that learn from the rows they guess cannot run.
    """
    left_out, given = LeftOut(), context.plan.attacks
    own, candidates = given_attacks(given), dict[str, list[Attack]]()
    ours = built_in_attacks()
    for name in available_attacks(given):
        try:
            attacks = [create_attack(name, known, given) for known in knowledge]
            reason = missing_need(attacks[0], release, knowledge[0])
        except LdpAuditError as error:
            if name in own or isinstance(error, AttackError):
                raise
            (left_out.unfit if name in ours else left_out.broken)[name] = str(error)
            continue
        if reason is None and attacks[0].learns_from_asked:
            reason = blind
        if reason is None:
            candidates[name] = attacks
        else:
            (left_out.broken if name in own else left_out.unfit)[name] = reason
    left_out.possible = max(sum(attacks[0].uses_release for attacks in candidates.values()), 1)
    results: list[T] = []
    for place, (name, attacks) in enumerate(candidates.items()):
        try:
            # Reported first: this is also where an audit whose time is up ends.
            context.progress.step(f"attack: {name}")
            context.progress.advance(place, len(candidates))
            results.append(run(name, attacks))
        except Stopped:
            left_out.stopped = tuple(candidates)[place:]
            break
        except AttackError:
            raise
        except LdpAuditError as error:
            if name in own and not isinstance(error, InsufficientDataError):
                raise InputError(f"The attack {name!r} cannot run: {error}") from error
            (left_out.unfit if name in ours else left_out.broken)[name] = str(error)
    return results, left_out


def knowledge_of(
    context: AuditContext, channel: Channel | None, seed: int, in_order: IntArray | None = None
) -> Knowledge:
    """Return what an attacker knows who attacks with this channel."""
    threads, device = threads_of_each(context), context.plan.device
    return Knowledge(channel, threads, seed, context.progress, context.claim, device, in_order)


@dataclass(frozen=True)
class AttackRun(Scored[FoldScore]):
    """How one attack did."""

    uses_release: bool = True
    """Whether it is an attack rather than a reference."""
    fitted_correct: int = 0
    fitted_n: int = 0
    """``fitted_correct`` and ``fitted_n``: right guesses on rows that the attack was fitted on
    (in-sample), at most 25,000 a fold; 0 where that is not measured."""
    given_release: bool = False
    """Whether it learns from the rows that it guesses: scores are then bounded given the release.
    """


@dataclass(frozen=True)
class Fold:
    """One direction of the cross-fitting."""

    knowledge: Knowledge
    fitting: Release
    held_out: Release
    again: Release
    """``fitting``, ``held_out`` and ``again``: rows to learn from, rows to guess, and some of those
    learnt from, to guess too."""
    rows: IndexArray
    """The places of the held-out rows in the release."""
    posterior: FloatArray
    """Float64 (held-out rows, k): P(y | x) by the model of the true labels."""
    baseline: IntArray
    """The guesses of that model."""
    slices: IntArray | None
    half: int
    """Which half is learnt from."""
    scored: BoolArray | None = None
    """Of the held-out rows those that are scored; None: all."""


def folds_of(context: AuditContext) -> list[Fold]:
    """Return both folds of a release with true labels, models of which are fitted here."""
    placed = replace(context.release, places=np.arange(len(context.release)))
    fit_halves(context, "truth")
    return [_fold(context, placed, half) for half in (0, 1)]


def run_attacks(context: AuditContext, folds: Sequence[Fold]) -> tuple[list[AttackRun], LeftOut]:
    """Fit and score every attack that applies, on both folds."""

    def run(name: str, attacks: list[Attack]) -> AttackRun:
        pairs, first = list(zip(attacks, folds, strict=True)), attacks[0]
        found = side_by_side(context).map(_run_fold, pairs, shared=context)
        scores, right, rows = zip(*found, strict=True)
        counts = first.uses_release, sum(right), sum(rows), first.learns_from_asked
        return AttackRun(name, first.title, tuple(scores), *counts)

    blind = None if context.run.guesses is None else _NOT_PAIRED
    known = [fold.knowledge for fold in folds]
    return run_each(context, folds[0].fitting, known, run, blind)


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
    knowledge.share(TRUTH_MODEL, model)
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
    """Return which of the rows are scored, bool of shape (n,): one of each stated group."""
    # Rows of one person or household go together, and an interval would count them as so many
    # people. None where no groups are stated.
    groups = context.release.groups
    if groups is None:
        return None
    scored = np.zeros(len(rows), dtype=np.bool_)
    scored[one_of_each(groups[rows], context.rng("label-inference", "group", name))] = True
    return scored


def _run_fold(pair: tuple[Attack, Fold], context: AuditContext) -> tuple[FoldScore, int, int]:
    """Return one fold's score, and how many of how many rows learnt from it guesses right."""
    attack, fold = pair
    rng = context.rng("label-inference", attack.name, str(fold.half))
    attack.fit(as_seen_by(attack, fold.fitting), rng)
    score = _held_out_score(context, attack, fold, rng)
    if not attack.uses_release or attack.learns_from_asked:
        return score, 0, 0
    rows = sample_asked(attack, len(fold.again), rng)
    asked = fold.again if rows is None else fold.again.take(rows)
    guesses = attack.posterior(without_truth(asked)).argmax(axis=1)
    return score, int((guesses == asked.truth).sum()), len(asked)


def _held_out_score(
    context: AuditContext, attack: Attack, fold: Fold, rng: np.random.Generator
) -> FoldScore:
    # The same rows are asked about in every release, so that they can be paired.
    drawing = context.rng("label-inference", "asked", attack.name, str(fold.half))
    rows = sample_asked(attack, len(fold.held_out), drawing)
    asked = fold.held_out if rows is None else fold.held_out.take(rows)
    assert asked.truth is not None
    posterior, truth = attack.posterior(without_truth(asked)), asked.truth
    rows = np.arange(len(fold.held_out)) if rows is None else rows
    if fold.scored is not None:
        kept = np.flatnonzero(fold.scored[rows])
        posterior, rows = posterior[kept], rows[kept]
        truth = TrueLabels(truth[kept])
    if context.run.guesses is not None:
        right = posterior.argmax(axis=1) == truth
        context.run.guesses.record(attack.name, fold.rows[rows], right, context.halves())
    return score_fold(
        truth,
        posterior,
        fold.baseline[rows] if attack.uses_release else None,
        rate_alpha=(1 - context.plan.confidence) / 2,
        rng=rng,
        slices=None if fold.slices is None else fold.slices[rows],
        alike=not attack.learns_from_asked,
    )


def sample_asked(attack: Attack, rows: int, rng: np.random.Generator) -> IndexArray | None:
    """Return a random sample of rows where the attack is too slow for all, else None."""
    if attack.most_rows is None or rows <= attack.most_rows:
        return None
    return np.sort(rng.choice(rows, size=attack.most_rows, replace=False))
