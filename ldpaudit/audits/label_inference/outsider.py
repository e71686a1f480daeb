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
from ldpaudit.attacks.scoring.measures import ACCURACY, ADVANTAGE, Measure
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.label_inference.budget import (
    LeftOut,
    candidate_attacks,
    knowledge_of,
    run_affordable,
    without_learners_from_asked,
)
from ldpaudit.audits.label_inference.estimates import BEST, BEST_TITLE, attack_score, score_id
from ldpaudit.audits.models import learning_rows, side_by_side
from ldpaudit.estimators.intervals.bounded_mean import mean_lower, mean_upper
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.randomness import seed_from
from ldpaudit.release import FloatArray, IndexArray, Release, ReleasedLabels
from ldpaudit.result import Estimate

_MOST_ROWS = 200_000
_ASSUMPTION: Final = "the claim holds, with the same channel for all features"
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


@dataclass(frozen=True)
class _Values:
    """One attack's unbiased values on two held-out folds, with their a-priori range."""

    name: str
    title: str
    folds: tuple[FloatArray, ...]
    low: float
    high: float


def outsider_estimates(context: AuditContext, channel: Channel) -> tuple[list[Estimate], LeftOut]:
    """Return the estimated accuracy of each attack that needs no true label, and what did not run.

    The channel is the claimed one, aligned with the release; raise InputError if it has no inverse.
    """
    runs, missing = _run_all(context, channel)
    confidence = context.plan.confidence
    estimates = [_estimate(values, ACCURACY, confidence) for values in runs]
    references = {v.name: v for v in runs if v.name in _REFERENCES}
    baseline = next((references[name] for name in _REFERENCES if name in references), None)
    attacks = [values for values in runs if values.name not in _REFERENCES]
    if baseline is not None:
        differences = [_difference(values, baseline) for values in attacks]
        same_rows = [d for d in differences if d is not None]
        estimates += [_estimate(difference, ADVANTAGE, confidence) for difference in same_rows]
        estimates += _best(same_rows, ADVANTAGE, confidence, missing.possible)
    candidates = [values for values in runs if values.name != "prior"]
    estimates += _best(candidates, ACCURACY, confidence, missing.possible)
    return estimates, missing


def _run_all(context: AuditContext, channel: Channel) -> tuple[list[_Values], LeftOut]:
    folds = [_fold(context, half, channel) for half in (0, 1)]
    known = [fold.knowledge for fold in folds]
    candidates, left_out = candidate_attacks(context, context.release, known)
    candidates = without_learners_from_asked(candidates, left_out, _NOT_BLIND)

    def run(_: str, attacks: list[Attack]) -> _Values:
        return _values(context, channel, attacks, folds)

    return run_affordable(context, candidates, left_out, run)


def _fold(context: AuditContext, half: int, channel: Channel) -> _Fold:
    rng = context.rng("label-inference", "shared", str(half))
    most = max(_MOST_ROWS // channel.matrix.shape[1], 1_000)
    names = "label-inference", "outsider", str(half)
    held_out = context.sample(context.half(1 - half), most, *names)
    fitting = context.release.take(learning_rows(context, half))
    return _Fold(knowledge_of(context, channel, seed_from(rng)), fitting, held_out, half)


def _values(
    context: AuditContext, channel: Channel, attacks: list[Attack], folds: list[_Fold]
) -> _Values:
    pairs = list(zip(attacks, folds, strict=True))
    values = side_by_side(context).map(_values_of_fold, pairs, shared=(context, channel))
    low, high = _range(channel)
    return _Values(attacks[0].name, attacks[0].title, tuple(values), low, high)


def _values_of_fold(pair: tuple[Attack, _Fold], shared: tuple[AuditContext, Channel]) -> FloatArray:
    (attack, fold), (context, channel) = pair, shared
    rng = context.rng("label-inference", attack.name, str(fold.half))
    attack.fit(fold.fitting, rng)
    asked = fold.held_out
    if attack.most_rows is not None and len(asked) > attack.most_rows:
        asked = np.sort(rng.choice(asked, size=attack.most_rows, replace=False))
    return unbiased_accuracy(attack, context.release.take(asked), channel)


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


def _difference(values: _Values, baseline: _Values) -> _Values | None:
    """Return the row-wise difference, None where the attack was asked about a sample of rows."""
    pairs = list(zip(values.folds, baseline.folds, strict=True))
    if any(len(ours) != len(theirs) for ours, theirs in pairs):
        return None
    reach = values.high - values.low
    return replace(values, folds=tuple(a - b for a, b in pairs), low=-reach, high=reach)


def _estimate(values: _Values, measure: Measure, confidence: float) -> Estimate:
    tail = (1 - confidence) / 2
    ends = _bound(values, tail, lower=True), _bound(values, tail, lower=False)
    return _scored(values, measure, ends, confidence, _METHOD)


def _scored(
    values: _Values, measure: Measure, ends: tuple[float, float], confidence: float, method: str
) -> Estimate:
    score = attack_score(values.name, values.title, measure)
    return Estimate.interval(
        score_id(score),
        score.title,
        # Unbiased values need not average to a proportion.
        min(max(_average(values), ends[0]), ends[1]),
        ends,
        confidence,
        kind="estimated",
        score=score,
        unit="proportion",
        n=sum(len(fold) for fold in values.folds),
        method=method,
        assumptions=(_ASSUMPTION,),
    )


def _average(values: _Values) -> float:
    return float(np.concatenate(values.folds).mean())


def _bound(values: _Values, alpha: float, *, lower: bool) -> float:
    total = sum(len(fold) for fold in values.folds)
    bound = mean_lower if lower else mean_upper
    share = alpha / len(values.folds)
    ends = [bound(fold, share, values.low, values.high) for fold in values.folds]
    average = sum(len(f) / total * end for f, end in zip(values.folds, ends, strict=True))
    return float(min(max(average, -1.0), 1.0))


def _best(
    runs: list[_Values], measure: Measure, confidence: float, possible: int
) -> list[Estimate]:
    if not runs:
        return []
    best, tail = max(runs, key=_average), (1 - confidence) / 2
    share = tail / max(possible, len(runs))
    low = max(_bound(values, share, lower=True) for values in runs)
    high = max(_bound(values, tail, lower=False) for values in runs)
    method = f"the strongest of {len(runs)}, here {best.name}; {_METHOD}"
    strongest = replace(best, name=BEST, title=BEST_TITLE)
    return [_scored(strongest, measure, (low, high), confidence, method)]
