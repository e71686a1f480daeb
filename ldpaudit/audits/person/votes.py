"""A person's label guessed from all releases: how noise wears away."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ldpaudit.arrays import BoolArray, FloatArray, IndexArray, IntArray
from ldpaudit.audits.assumptions.stated import INDEPENDENT
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.audits.person.answers import Answers
from ldpaudit.audits.person.noise import FoundNoise
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.estimators.person.answers import log_likelihoods
from ldpaudit.estimators.person.votes import estimated_prior, guesses
from ldpaudit.result import Curve, Estimate, Finding, Score

_FEWEST = 40
_TITLES = {
    "vote": "Vote over all releases",
    "vote-with-features": "Vote over all releases, and features",
    "released-label": "The last release alone",
    "prior": "The commonest label",
}
_METHODS = {
    "vote": "the likeliest label given a person's answers in all releases, by the claimed channels "
    "and label frequencies estimated from the other half's answers",
    "vote-with-features": "the same with a model of the label given the features, fitted on the "
    "other half with its true labels",
    "released-label": "the likeliest label given the answer in the last release",
    "prior": "the commonest label, as estimated from the other half's answers",
}


@dataclass(frozen=True)
class _Hits:
    """Which guesses were right, and the half that each person is in."""

    right: BoolArray
    halves: IndexArray

    def interval(self, alpha: float) -> tuple[float, float, float]:
        """Return the share of right guesses with a two-sided interval at level 1 − alpha."""
        ends = np.zeros(2)
        for half in (0, 1):
            mine = self.right[self.halves == half]
            count, n, level = int(mine.sum()), len(mine), alpha / 4
            part = float(trials_lower(count, n, level)), float(trials_upper(count, n, level))
            ends += np.array(part) * n / len(self.right)
        return float(self.right.mean()), float(ends[0]), float(ends[1])


def votes_finding(seen: Answers, noise: FoundNoise) -> Finding:
    """Return how often true labels in the last release are guessed from all releases."""
    matrices, people = seen.matrices, seen.counted
    if matrices is None or len(people) < _FEWEST:
        return Finding()
    last = seen.context
    halves = last.halves()[seen.releases.rows[people, -1]]
    if min(np.bincount(halves, minlength=2)) < _FEWEST // 4:
        return Finding()
    table, truth = seen.releases.table(people), seen.releases.truth(len(matrices) - 1, people)
    t = 1 if noise.told == "remembered" else len(matrices)
    used = range(len(matrices) - t, len(matrices))
    hits = {
        "vote": _voted([matrices[i] for i in used], table[:, list(used)], truth, halves),
        "released-label": _voted(matrices[-1:], table[:, -1:], truth, halves),
        "prior": _voted([], table[:, :0], truth, halves, prior=_prior(matrices, table, halves)),
    }
    features = _features_prior(seen, people)
    if features is not None:
        channels = [matrices[i] for i in used]
        answers = table[:, list(used)]
        hits["vote-with-features"] = _voted(channels, answers, truth, halves, prior=features)
    estimates = tuple(_score(seen, name, one) for name, one in hits.items())
    curve = _curve(seen, matrices, table, truth, halves) if t > 1 else None
    return Finding(estimates, () if curve is None else (curve,))


def _prior(matrices: list[FloatArray], table: IntArray, halves: IndexArray) -> FloatArray:
    """Return label frequencies, each half's from the other's answers, float64 (n, k)."""
    logs = log_likelihoods(matrices, table)
    priors = [estimated_prior(logs[halves == 1 - half]) for half in (0, 1)]
    return np.asarray(np.stack(priors)[halves])


def _voted(
    matrices: list[FloatArray],
    table: IntArray,
    truth: IntArray,
    halves: IndexArray,
    prior: FloatArray | None = None,
) -> _Hits:
    known = _prior(matrices, table, halves) if prior is None else prior
    named = guesses(matrices, table, known) if matrices else known.argmax(axis=1)
    return _Hits(named == truth, halves)


def _features_prior(seen: Answers, people: IndexArray) -> FloatArray | None:
    """Return P(label | features) of the last release, from a model of the other half."""
    last = seen.context
    if last.release.features.is_constant() or last.out_of_time():
        return None
    try:
        posterior = cross_fitted_posterior(last, "truth")
    except InsufficientDataError:
        return None
    order = [last.release.classes.index(label) for label in seen.releases.classes]
    return np.asarray(posterior[seen.releases.rows[people, -1]][:, order])


def _score(seen: Answers, name: str, hits: _Hits) -> Estimate:
    value, low, high = hits.interval(seen.alpha)
    score = Score(subject=name, measure="accuracy", row=_TITLES[name], column="Accuracy")
    kind, assumptions = seen.standing(INDEPENDENT)
    return Estimate.interval(
        f"attack.{name}.accuracy",
        score.title,
        value,
        (low, high),
        seen.context.plan.confidence,
        kind=kind,
        assumptions=assumptions,
        score=score,
        unit="proportion",
        n=len(hits.right),
        count=int(hits.right.sum()),
        method=f"{_METHODS[name]}; of people in all releases, their label in the last one",
    )


def _curve(
    seen: Answers,
    matrices: list[FloatArray],
    table: IntArray,
    truth: IntArray,
    halves: IndexArray,
) -> Curve | None:
    """Return how often labels are guessed by vote; None where few guesses are wrong."""
    t = len(matrices)
    found = list(_by_number(matrices, table, truth, halves, seen.alpha))
    return Curve(
        id="person.accuracy_by_releases",
        title="Labels guessed right by vote, over the number of releases used",
        kind="certified",
        x=tuple(range(1, t + 1)),
        value=tuple(value for value, _, _ in found),
        low=tuple(low for _, low, _ in found),
        high=tuple(high for _, _, high in found),
        side="two-sided",
        level=seen.context.plan.confidence,
        x_label="the last releases used",
        unit="proportion",
        n=len(truth),
        method=_METHODS["vote"],
    )


def _by_number(
    matrices: list[FloatArray],
    table: IntArray,
    truth: IntArray,
    halves: IndexArray,
    alpha: float,
) -> Iterator[tuple[float, float, float]]:
    for used in range(1, len(matrices) + 1):
        hits = _voted(matrices[-used:], table[:, -used:], truth, halves)
        yield hits.interval(alpha)
