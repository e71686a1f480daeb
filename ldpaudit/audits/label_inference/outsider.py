"""Scoring attacks without true labels: what the claim, if it holds, says about their accuracy.

For an attack g(x, z) and a channel T that does not depend on x, the guess is right with probability
Σ_y η_y(x) c_y(x), c_y(x) = Σ_z T[y, z] 1{g(x, z) = y}. The released label z gives an unbiased
estimate of η through the inverse channel R, so Σ_y R[z, y] c_y(x) is an unbiased estimate of the
accuracy at each held-out row; no true label is needed.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ldpaudit.attacks.interface import Attack, Knowledge
from ldpaudit.attacks.scoring import ACCURACY, ADVANTAGE, Measure, RowValues, between, row_measure
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.label_inference.estimates import BEST_TITLE
from ldpaudit.audits.label_inference.runs import LeftOut, knowledge_of, run_each
from ldpaudit.audits.models import learning_rows, side_by_side
from ldpaudit.audits.scores import Scored, best_estimate, score_estimate
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.randomness import seed_from
from ldpaudit.release import FloatArray, IndexArray, Release, ReleasedLabels
from ldpaudit.result import Estimate
from ldpaudit.result.estimate import Bounded

_MOST_ROWS = 200_000
_STATED: Final[Bounded] = {
    "kind": "estimated",
    "assumptions": ("the claim holds, with the same channel for all features",),
}
_METHOD: Final = (
    "held-out rows, guesses for every possible released label, weighted by the inverse of the "
    "claimed channel; no true label is used"
)
_NOT_BLIND: Final = (
    "it learns from the released labels of the rows it guesses, and without true labels those same "
    "labels score it"
)
_REFERENCES: Final = ("classifier", "prior")
"""Learnt from the release, but blind to a person's own released label: the outsider's reference is
the first of these that ran."""


@dataclass(frozen=True)
class _Fold:
    """What is learnt from, and the rows to guess."""

    knowledge: Knowledge
    fitting: Release
    held_out: IndexArray
    half: int


Run = Scored[RowValues]


def outsider_estimates(context: AuditContext, channel: Channel) -> tuple[list[Estimate], LeftOut]:
    """Return the estimated accuracy of each attack that needs no true label, and what did not run.

    The channel is the claimed one, aligned with the release; raise InputError if it has no inverse.
    """
    folds = [_fold(context, half, channel) for half in (0, 1)]

    def run(_: str, attacks: list[Attack]) -> Run:
        pairs = list(zip(attacks, folds, strict=True))
        found = side_by_side(context).map(_of_fold, pairs, shared=(context, channel))
        return Scored(attacks[0].name, attacks[0].title, tuple(found))

    known = [fold.knowledge for fold in folds]
    runs, missing = run_each(context, context.release, known, run, _NOT_BLIND)
    low, high = _range(channel)
    right = row_measure("accuracy", ACCURACY.title, _METHOD, between(low, high))
    gained = row_measure("advantage", ADVANTAGE.title, _METHOD, between(low - high, high - low))
    estimates = _estimates(context, runs, right)
    references = {run.name: run for run in runs if run.name in _REFERENCES}
    baseline = next((references[name] for name in _REFERENCES if name in references), None)
    if baseline is not None:
        attacks = (_against(run, baseline) for run in runs if run.name not in _REFERENCES)
        same_rows = [run for run in attacks if run is not None]
        estimates += _estimates(context, same_rows, gained)
        estimates += _best(context, same_rows, gained, missing.possible)
    candidates = [run for run in runs if run.name != "prior"]
    return estimates + _best(context, candidates, right, missing.possible), missing


def _fold(context: AuditContext, half: int, channel: Channel) -> _Fold:
    rng = context.rng("label-inference", "shared", str(half))
    most = max(_MOST_ROWS // channel.matrix.shape[1], 1_000)
    names = "label-inference", "outsider", str(half)
    held_out = context.sample(context.half(1 - half), most, *names)
    fitting = context.release.take(learning_rows(context, half))
    return _Fold(knowledge_of(context, channel, seed_from(rng)), fitting, held_out, half)


def _of_fold(pair: tuple[Attack, _Fold], shared: tuple[AuditContext, Channel]) -> RowValues:
    (attack, fold), (context, channel) = pair, shared
    rng = context.rng("label-inference", attack.name, str(fold.half))
    attack.fit(fold.fitting, rng)
    asked = fold.held_out
    if attack.most_rows is not None and len(asked) > attack.most_rows:
        asked = np.sort(rng.choice(asked, size=attack.most_rows, replace=False))
    values = unbiased_accuracy(attack, context.release.take(asked), channel)
    return RowValues({"accuracy": values}, len(asked))


def unbiased_accuracy(attack: Attack, release: Release, channel: Channel) -> FloatArray:
    """Return values whose mean is the attack's accuracy if the channel is as claimed, shape (n,).

    The attack is fitted on other rows than those of ``release``, whose true labels are not used;
    the channel has rank k.
    """
    n, k = len(release), len(channel.classes)
    right = np.zeros((n, k))
    everyone = np.arange(n)
    for z in range(len(channel.outputs)):
        pretended = ReleasedLabels(np.full(n, z, dtype=np.int32))
        asked = replace(release, released=pretended, truth=None)
        guess = attack.posterior(asked).argmax(axis=1)
        right[everyone, guess] += channel.matrix[guess, z]
    return np.asarray((channel.inverse[release.released] * right).sum(axis=1))


def _range(channel: Channel) -> tuple[float, float]:
    """Return bounds of the values that hold for every attack, since each c_y lies in [0, 1]."""
    inverse = channel.inverse
    low, high = np.minimum(inverse, 0).sum(axis=1), np.maximum(inverse, 0).sum(axis=1)
    return float(low.min()), float(high.max())


def _against(run: Run, baseline: Run) -> Run | None:
    """Return what a run gains row by row, None where it was asked about a sample of the rows."""
    pairs = list(zip(run.folds, baseline.folds, strict=True))
    if any(ours.n != theirs.n for ours, theirs in pairs):
        return None
    gained = [ours.values["accuracy"] - theirs.values["accuracy"] for ours, theirs in pairs]
    folds = tuple(RowValues({"advantage": part}, len(part)) for part in gained)
    return replace(run, folds=folds)


def _estimates(
    context: AuditContext, runs: list[Run], measure: Measure[RowValues]
) -> list[Estimate]:
    return [score_estimate(run, measure, context.plan.confidence, **_STATED) for run in runs]


def _best(
    context: AuditContext, runs: list[Run], measure: Measure[RowValues], possible: int
) -> list[Estimate]:
    if not runs:
        return []
    words, confidence = "the strongest of {count}, here {best}; {method}", context.plan.confidence
    best = best_estimate(runs, measure, confidence, possible, BEST_TITLE, words, **_STATED)
    return [best[0]]
