"""Label inference: how often an attacker with the release guesses a person's true label."""

# Every attack is fitted on one half of the rows and scored on the other, both ways; one learns from
# all that is released, as a real attacker does. It is compared with guessing the most frequent
# label, with an attacker who has the features but no release, and with what the claim allows at
# most. Being no better than the features alone is what good privacy looks like.

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ldpaudit.attacks.interface import Attack, Knowledge
from ldpaudit.attacks.scoring import (
    ACCURACY,
    ADVANTAGE,
    RowValues,
    average,
    between,
    row_measure,
)
from ldpaudit.audits.assumptions.standing import as_it_stands
from ldpaudit.audits.interface import AuditContext, BuiltIn, Part, collected
from ldpaudit.audits.label_inference.estimates import (
    AUDIT_ID,
    BEST_TITLE,
    best_parts,
    claim_parts,
    class_parts,
    confidence_curve,
    score_estimates,
    slice_parts,
    strongest,
)
from ldpaudit.audits.label_inference.runs import (
    LeftOut,
    folds_of,
    knowledge_of,
    run_attacks,
    run_each,
    sample_asked,
)
from ldpaudit.audits.models import aligned_channel, learning_rows, side_by_side, why_unscored
from ldpaudit.audits.scores import Scored, best_bound, score_estimate
from ldpaudit.errors import InsufficientDataError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.models.screening import MOST_COLUMNS, TREE_COLUMNS, merged, unrepeated
from ldpaudit.randomness import seed_from
from ldpaudit.release import FloatArray, IndexArray, Release, ReleasedLabels
from ldpaudit.result import Estimate, Note
from ldpaudit.result.estimate import Bounded

MIN_ROWS = 40  # With fewer rows there is nothing to fit and score an attack on.


def _parts(context: AuditContext) -> Iterator[Part]:
    if len(context.release) < MIN_ROWS:
        raise InsufficientDataError(f"Attacks need at least {MIN_ROWS} rows.")
    channel = aligned_channel(context)
    if context.release.truth is not None:
        yield as_it_stands(context, collected(_insider(context, channel)))
        return
    assert channel is not None
    yield as_it_stands(context, collected(_outsider(context, channel)))


AUDIT: Final = BuiltIn(
    AUDIT_ID, _parts, lambda context: why_unscored(context, "an attack cannot be scored")
)


def _insider(context: AuditContext, channel: Channel | None) -> Iterator[Part]:
    confidence, folds = context.plan.confidence, folds_of(context)
    runs, missing = run_attacks(context, folds)
    model, champion = np.concatenate([fold.posterior for fold in folds]), strongest(runs)
    reached = 0.0 if champion is None else average(champion.folds, ACCURACY.value)
    claimed = collected(claim_parts(context, channel, model, reached))
    yield from best_parts(runs, confidence, missing.possible)
    yield from claimed.notes
    blind = strongest([run for run in runs if not run.given_release])
    if blind is not None and champion is not None:
        yield from (classes := list(class_parts(context, blind, missing.possible)))
        if blind is not champion and any(isinstance(part, Estimate) for part in classes):
            text = (
                f"For each class the attack {blind.name} is scored, the strongest of those that "
                "learn nothing from the rows they guess."
            )
            yield Note.info(AUDIT_ID, text)
    if champion is not None:
        yield from slice_parts(context, champion, missing.possible)
        curve = confidence_curve(champion, confidence, missing.possible)
        yield from () if curve is None else (curve,)
    for run in runs:
        yield from score_estimates(run, confidence)
    yield from claimed.estimates
    yield from _sampling(context, len(model))
    yield from _remarks(context, missing)


def _sampling(context: AuditContext, scored: int) -> Iterator[Note]:
    """Say how many rows attacks learn from and are scored on, where they are not all."""
    n, grouped = len(context.release), context.release.groups is not None
    learnt = sum(len(learning_rows(context, half)) for half in (0, 1))
    if grouped:
        yield Note.info(
            AUDIT_ID,
            "Attacks are scored on one row of each group (--group, a repeated --id), drawn at "
            "random: rows that belong together are no independent guesses.",
        )
    if min(scored, learnt) < n:
        yield Note.info(
            AUDIT_ID,
            f"Of {n:,} rows, attacks learn from {learnt:,} and are scored on "
            f"{'the groups of ' if grouped else ''}{scored:,}, each a random sample; intervals "
            "allow for it. Attacks that are slow are scored on fewer, as their counts say.",
        )


def _remarks(context: AuditContext, missing: LeftOut) -> Iterator[Note]:
    """Say which columns models do not, or not wholly, learn from, and which attacks did not run."""
    features = context.release.features
    alone, rare = unrepeated(features), merged(features)
    if features.width > TREE_COLUMNS:
        yield Note.info(
            AUDIT_ID,
            f"Feature columns: {features.width}. Models of trees learn from {TREE_COLUMNS} of them "
            f"and every model from {MOST_COLUMNS} at most: those that go most clearly with the "
            "labels that the model learns from, never with labels of rows that are scored.",
        )
    if alone > 0:
        yield Note.info(
            AUDIT_ID,
            f"Feature columns with another value in nearly every row: {alone}. Models learn "
            "nothing from a value that does not come again, so attacks leave such columns out, but "
            "for the words of free texts.",
        )
    if rare > 0:
        yield Note.info(
            AUDIT_ID,
            f"Feature columns with values on fewer than 10 rows: {rare}. The attacks' models take "
            "the rare values of a column as one.",
        )
    for make, left_out in ((Note.warning, missing.broken), (Note.info, missing.unfit)):
        for name, reason in left_out.items():
            yield make(AUDIT_ID, f"The attack {name} was left out: {reason.rstrip('.')}.")
    if missing.stopped:
        text = (
            f"Attacks are missing, because {context.run.stop.reason}: "
            f"{', '.join(missing.stopped)}. The strongest may be among them."
        )
        yield Note.warning(AUDIT_ID, text)


_MOST_VALUES_SCORED = 200_000
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
# Learnt from the release, but blind to a person's own released label: the outsider's reference is
# the first of these that ran.
_REFERENCES: Final = ("classifier", "prior")


@dataclass(frozen=True)
class _Fold:
    """What is learnt from, and the rows to guess."""

    knowledge: Knowledge
    fitting: Release
    held_out: IndexArray
    half: int


ScoredAttack = Scored[RowValues]


def _outsider(context: AuditContext, channel: Channel) -> Iterator[Part]:
    """Yield the estimated accuracy of each attack that needs no true label, and what did not run.

    The channel is the claimed one, aligned with the release; raise InputError if it has no inverse.

    For an attack g(x, z) and a channel T that does not depend on x, the guess is right with
    probability Σ_y η_y(x) c_y(x), c_y(x) = Σ_z T[y, z] 1{g(x, z) = y}. The released label z gives
    an unbiased estimate of η through the inverse channel R, so Σ_y R[z, y] c_y(x) is an unbiased
    estimate of the accuracy at each held-out row; no true label is needed.
    """
    folds = [_fold(context, half, channel) for half in (0, 1)]

    def run(_: str, attacks: list[Attack]) -> ScoredAttack:
        pairs = list(zip(attacks, folds, strict=True))
        found = side_by_side(context).map(_of_fold, pairs, shared=(context, channel))
        return Scored(attacks[0].name, attacks[0].title, tuple(found))

    known = [fold.knowledge for fold in folds]
    runs, missing = run_each(context, context.release, known, run, _NOT_BLIND)
    # Bounds of the values that hold for every attack, since each c_y lies in [0, 1].
    low = float(np.minimum(channel.inverse, 0).sum(axis=1).min())
    high = float(np.maximum(channel.inverse, 0).sum(axis=1).max())
    right = row_measure("accuracy", ACCURACY.title, _METHOD, between(low, high))
    gained = row_measure("advantage", ADVANTAGE.title, _METHOD, between(low - high, high - low))
    references = {run.name: run for run in runs if run.name in _REFERENCES}
    baseline = next((references[name] for name in _REFERENCES if name in references), None)
    others = [run for run in runs if run.name not in _REFERENCES] if baseline is not None else []
    against = [one for run in others if baseline and (one := _against(run, baseline)) is not None]
    candidates = [run for run in runs if run.name != "prior"]
    confidence, chosen = context.plan.confidence, "the strongest of {count}, here {best}; {method}"
    for scored, measure in ((runs, right), (against, gained)):
        yield from (score_estimate(run, measure, confidence, **_STATED) for run in scored)
    for scored, measure in ((against, gained), (candidates, right)):
        if scored:
            asked = scored, measure, confidence, missing.possible, BEST_TITLE, chosen
            strongest = best_bound(*asked, **_STATED).shown
            assert strongest is not None
            yield strongest
    yield from claim_parts(context, channel, None)
    yield from _remarks(context, missing)


def _fold(context: AuditContext, half: int, channel: Channel) -> _Fold:
    rng = context.rng("label-inference", "shared", str(half))
    most = max(_MOST_VALUES_SCORED // channel.matrix.shape[1], 1_000)
    names = "label-inference", "outsider", str(half)
    held_out = context.sample(context.half(1 - half), most, *names)
    fitting = context.release.take(learning_rows(context, half))
    return _Fold(knowledge_of(context, channel, seed_from(rng)), fitting, held_out, half)


def _of_fold(pair: tuple[Attack, _Fold], shared: tuple[AuditContext, Channel]) -> RowValues:
    (attack, fold), (context, channel) = pair, shared
    rng = context.rng("label-inference", attack.name, str(fold.half))
    attack.fit(fold.fitting, rng)
    asked, some = fold.held_out, sample_asked(attack, len(fold.held_out), rng)
    asked = asked if some is None else asked[some]
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


def _against(run: ScoredAttack, baseline: ScoredAttack) -> ScoredAttack | None:
    """Return what a run gains row by row, None where it was asked about a sample of the rows."""
    pairs = list(zip(run.folds, baseline.folds, strict=True))
    if any(ours.n != theirs.n for ours, theirs in pairs):
        return None
    gained = [ours.values["accuracy"] - theirs.values["accuracy"] for ours, theirs in pairs]
    folds = tuple(RowValues({"advantage": part}, len(part)) for part in gained)
    return replace(run, folds=folds)
