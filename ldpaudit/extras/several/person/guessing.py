"""A label guessed from everything that was released of a person: all releases, or other columns."""

# Votes over releases show how noise wears away. Of a private column two attackers who know the true
# labels of half of the people learn P(label | features) from them and combine it with the released
# label; one sees the other released columns, too. They are compared on the same people of the other
# half.

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

import numpy as np

from ldpaudit.arrays import BoolArray
from ldpaudit.audits.assumptions.standing import as_it_stands
from ldpaudit.audits.instance_loss.neighbourhoods import measured_channel
from ldpaudit.audits.interface import BuiltIn, Part, collected
from ldpaudit.audits.label_inference.runs import one_of_each_group
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.doors import (
    AuditContext,
    Curve,
    Estimate,
    FeatureTable,
    FloatArray,
    InsufficientDataError,
    conditioned,
)
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.estimators.intervals.bounded_mean import Folds, paired_interval
from ldpaudit.extras.several.person.answers import Answers
from ldpaudit.extras.several.person.estimators import (
    best_guess,
    estimated_prior,
    guesses,
    log_likelihoods,
)
from ldpaudit.extras.several.related import Companions
from ldpaudit.result import Score
from ldpaudit.result.stated import INDEPENDENT

FEWEST_ROWS: Final = 80
_FEWEST: Final = 40
_MOST_DRAWN: Final = 24
_GUESSES: Final = {
    "vote": (
        "Vote over all releases",
        "the likeliest label given a person's answers in all releases, by the claimed channels and "
        "label frequencies estimated from the other half's answers",
    ),
    "released-label": (
        "The last release alone",
        "the likeliest label given the answer in the last release",
    ),
    "prior": (
        "The commonest label",
        "the commonest label, as estimated from the other half's answers",
    ),
    "vote-with-features": (
        "Vote over all releases, and features",
        "the same with a model of the label given the features, fitted on the other half with its "
        "true labels",
    ),
}
_ATTACK: Final = (
    "an attacker who knows the true labels of half of the people, with the other released columns "
    "less without them; the same held-out people, betting bounds on each of two folds"
)


def guess_curve(answers: Answers) -> Iterator[Curve]:
    """Yield how often the best guess is right over the number of releases, for fresh noise."""
    matrices = answers.matrices
    if matrices is None or len(matrices) > _MOST_DRAWN:
        return
    right = [best_guess(matrices[:used]) for used in range(1, len(matrices) + 1)]
    known = [value for value in right if value is not None]
    if len(known) > 1:
        yield Curve(
            id="person.best_guess",
            title="How often the best guess of a label is right, with fresh noise in each release",
            kind="exact",
            x=tuple(range(1, len(known) + 1)),
            value=tuple(min(value, 1.0) for value in known),
            x_label="releases",
            unit="proportion",
            method="from the claimed channels, all labels being equally likely",
        )


def votes(answers: Answers, *, once: bool) -> Iterator[Part]:
    """Yield how often true labels in the last release are guessed from all releases.

    ``once``: the noise looks remembered, so that the last answer holds what the others do.
    """
    matrices, people, last = answers.matrices, answers.counted, answers.context
    if matrices is None or len(people) < _FEWEST:
        return
    rows, level = answers.rows[people, -1], 1 - answers.alpha
    halves = last.halves()[rows]
    if min(np.bincount(halves, minlength=2)) < _FEWEST // 4:
        return
    released, truth, t = answers.released[people], answers.truth[people, -1], len(matrices)

    def right(used: int, prior: FloatArray | None = None) -> BoolArray:
        """Whether the guess by the last releases is right; label frequencies of the other half."""
        some, table = matrices[t - used :], released[:, t - used :]
        if prior is None:
            logs = log_likelihoods(some or matrices, table if used else released)
            prior = np.stack([estimated_prior(logs[halves == 1 - half]) for half in (0, 1)])[halves]
        return np.asarray(guesses(some, table, prior) == truth)

    def interval(hits: BoolArray) -> tuple[float, float, float]:
        """Return the share of right guesses with a two-sided interval."""
        ends = np.zeros(2)
        for half in (0, 1):
            mine = hits[halves == half]
            each = (f(mine.sum(), len(mine), (1 - level) / 4) for f in (trials_lower, trials_upper))
            ends += [end * len(mine) / len(hits) for end in each]
        return float(hits.mean()), float(ends[0]), float(ends[1])

    used = 1 if once else t
    found = {"vote": right(used), "released-label": right(1), "prior": right(0)}
    if not (last.release.features.is_constant() or last.out_of_time()):
        with suppress(InsufficientDataError):
            posterior = cross_fitted_posterior(last, "truth")[rows]
            order = [last.release.classes.index(label) for label in answers.labels_of(-1)[0]]
            found["vote-with-features"] = right(used, posterior[:, order])
    kind, assumptions = answers.standing(INDEPENDENT)
    for name, hits in found.items():
        (row, method), (value, low, high) = _GUESSES[name], interval(hits)
        score = Score(subject=name, measure="accuracy", row=row, column="Accuracy")
        yield Estimate.interval(
            f"attack.{name}.accuracy",
            score.title,
            value,
            (low, high),
            level,
            kind=kind,
            assumptions=assumptions,
            score=score,
            unit="proportion",
            n=len(hits),
            count=int(hits.sum()),
            method=f"{method}; of people in all releases, their label in the last one",
        )
    if used > 1:
        values, lows, highs = zip(*(interval(right(some)) for some in range(1, t + 1)), strict=True)
        yield Curve(
            id="person.accuracy_by_releases",
            title="Labels guessed right by vote, over the number of releases used",
            kind=kind,
            assumptions=assumptions,
            x=tuple(range(1, t + 1)),
            value=values,
            low=lows,
            high=highs,
            side="two-sided",
            level=level,
            x_label="the last releases used",
            unit="proportion",
            n=len(truth),
            method=_GUESSES["vote"][1],
        )


def _unavailable(context: AuditContext) -> str | None:
    if not isinstance(context.related, Companions):
        return "the release has one private column"
    return None if context.release.truth is not None else "it needs true labels"


def _parts(context: AuditContext) -> Iterator[Part]:
    """Yield what is learnt of a column with the other released columns, and without them."""
    companions, release, level = context.related, context.release, context.plan.confidence
    assert isinstance(companions, Companions)
    assert companions is not None
    if len(release) < FEWEST_ROWS:
        raise InsufficientDataError(
            f"What the other columns reveal needs at least {FEWEST_ROWS} rows."
        )
    seen, joint = companions.release(alone=False).features, companions.claim
    apart = joint is None or joint.independent
    if not apart:  # One mechanism drew all columns: the noise of one goes along with others'.
        seen = replace(
            seen,
            categorical=np.hstack([seen.categorical, release.released[:, None].astype(np.int32)]),
            cardinalities=(*seen.cardinalities, len(release.outputs)),
            columns=seen.columns + 1,
        )
    others = _right(context, seen, own=apart)
    alone = _right(context, companions.release(alone=True).features, own=True)
    # Of a group of rows that was given one counts, drawn by those who see the other columns.
    scored = []
    for half in (0, 1):
        rows = context.half(half)
        some = one_of_each_group(context, rows, str(half))
        scored.append(rows if some is None else rows[some])
    gains = (others[rows].astype(float) - alone[rows] for rows in scored)
    found, every = paired_interval(Folds(tuple(gains)), 1 - level), np.concatenate(scored)
    gain = Estimate.interval(
        "companions.attack_gain",
        "What an attack gains by the other released columns",
        found.value,
        (found.low, found.high),
        level,
        unit="proportion",
        n=found.n,
        method=_ATTACK,
        assumptions=(INDEPENDENT,),
        reference="Waudby-Smith & Ramdas (2024)",
    )
    yield as_it_stands(context, collected([gain]))
    for name, title, hits in (
        ("companions.accuracy_with", "Accuracy with the other released columns", others[every]),
        ("companions.accuracy_without", "Accuracy without them", alone[every]),
    ):
        yield Estimate.estimated(
            name,
            title,
            float(hits.mean()),
            unit="proportion",
            n=len(every),
            count=int(hits.sum()),
            method="held-out guesses of the same attacker",
            assumptions=(INDEPENDENT,),
        )


OTHER_COLUMNS: Final = BuiltIn("companions", _parts, _unavailable)


def _right(context: AuditContext, features: FeatureTable, *, own: bool) -> BoolArray:
    """Return which rows are guessed right by some features, with the same halves.

    ``own``: by the posterior and the released label.
    """
    if features.width != context.release.features.width:
        same = replace(context.release, features=features, columns=(), before=frozenset())
        context = context.of(same, memo={"halves": context.halves()})
    release, truth = context.release, context.truth
    posterior, right = cross_fitted_posterior(context, "truth"), np.zeros(len(truth), np.bool_)
    sizes = len(release.classes), len(release.outputs)
    for half in (0, 1):
        fitting, held_out = context.half(half), context.half(1 - half)
        guess = posterior[held_out]
        if own:
            channel = measured_channel(truth[fitting], release.released[fitting], *sizes)
            guess = conditioned(guess, channel.T[release.released[held_out]])
        right[held_out] = guess.argmax(axis=1) == truth[held_out]
    return right
