"""``ldpaudit.audit_predictions``: what predictions for training rows reveal about their labels."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np

from ldpaudit.api import plan_of, read_with, seed_of
from ldpaudit.datasets.probabilities import class_probabilities, with_canaries
from ldpaudit.doors import (
    AuditOptions,
    Estimate,
    FeatureTable,
    FloatArray,
    IndexArray,
    InputError,
    IntArray,
    NoProgress,
    Plan,
    Release,
    child_generator,
    clopper_pearson,
    from_declaration,
    shift_lower,
)
from ldpaudit.estimators.epsilon.guesses import GuessCounts
from ldpaudit.estimators.intervals.bounded_mean import Folds, best_interval
from ldpaudit.extras.kinds.noisy_features.tradeoff import (
    epsilon_of_mu,
    fixed_share,
    gaussian_mu,
    one_run_mu,
)
from ldpaudit.extras.kinds.observational.evidence import check_canaries
from ldpaudit.extras.probe.models.audit import SHARES, curve_estimate, verdict_on
from ldpaudit.extras.probe.models.game import expected
from ldpaudit.extras.probe.models.result import (
    CURVE_EPSILON,
    SCHEMA_VERSION,
    PredictionsAudit,
)
from ldpaudit.judging.policy import default_policy
from ldpaudit.keywords import in_python, made
from ldpaudit.models.label_model import fit_posterior
from ldpaudit.options import FileOptions, option_name
from ldpaudit.pipeline.audit import pinned
from ldpaudit.release import BoolArray

_FEWEST: Final = 100
_FEWEST_CANARIES: Final = 40
_FEWEST_SIMILAR, _MOST_CLASSES = 1_000, 12
"""Rows and classes with which predictions are compared with those for similar rows."""
_LEAST: Final = 1e-7
"""Of a probability, before its logarithm is taken."""
_USED: Final = {
    *("truth", "mechanism", "rng", "label", "id_column", "drop", "features", "canaries", "threads"),
    *("memory", "progress", "stop", "command", "release"),
    *(field.name for field in fields(FileOptions)),
}
_ALONE, _STATED, _LEARNT = "features", "stated", "learnt"
_ASSUMED: Final = ("given the model, people are guessed independently of one another",)


@in_python(AuditOptions)
def audit_predictions(
    predictions: Any,
    truth: Any,
    mechanism: Any = None,
    *,
    gaussian_delta: float | None = None,
    **options: Any,
) -> PredictionsAudit:
    """Audit a model's predictions for its own training rows: what do they reveal of the labels?

    Attackers who have the model's probabilities are compared with one who has the true features
    alone. ε of the training is bounded only where the auditor drew labels for it (``canaries``).

    Parameters
    ----------
    predictions : path, DataFrame, Arrow table or float array of shape (n, k)
        The model's probability of each class, in a column named after it; an array has them in the
        classes' order.
    truth : path, DataFrame or Arrow table
        The training table in the same row order: features, and the labels as they were given to the
        training, in the column ``label``.
    mechanism : claim in any of its forms, optional
        What was promised of the training; of it, ε counts.
    gaussian_delta : float, optional
        ε is claimed at this δ with the whole curve of Gaussian noise; it is then judged by a bound
        under that curve, from the canaries.
    **options
        ``label``, ``canaries``, ``id_column``, ``drop``, ``features``, ``rng``, ``threads`` and
        those about files, as of :func:`ldpaudit.audit`; ``epsilon``: claimed, in nats.

    Returns
    -------
    PredictionsAudit
        With ``verdict``, ``sentence``, ``estimates``; ``to_html()``, ``to_json()``, ``to_frame()``.

    Raises
    ------
    ldpaudit.errors.InputError
        One clear line about what is wrong with the tables or the claim.

    References
    ----------
    Kalemaj et al. (2025), "Observational auditing of label privacy"; Steinke, Nasr & Jagielski
    (2023), "Privacy auditing with one (1) training run"; Mahloujifar, Melis & Chaudhuri (2025),
    "Auditing f-differential privacy in one run".
    """
    given = {"truth": truth} | ({} if mechanism is None else {"mechanism": mechanism}) | options
    return of_predictions(
        predictions, made(AuditOptions, given, "audit_predictions"), gaussian_delta
    )


def of_predictions(
    predictions: Any, options: AuditOptions, gaussian_delta: float | None = None
) -> PredictionsAudit:
    """Audit predictions as the options ask."""
    _check(options, gaussian_delta)
    progress = options.progress or NoProgress()
    training = replace(options, truth=None)
    release = read_with(options.truth, training).release
    if len(release) < _FEWEST or release.features.width == 0 or len(release.classes) < 2:
        raise InputError(
            f"The training table must have features, at least {_FEWEST} rows and two classes. Got "
            f"{len(release):,} rows, {release.features.columns} features and "
            f"{len(release.classes)} classes."
        )
    said = class_probabilities(predictions, release, "The predictions", options)
    release = with_canaries(release, options.canaries, options)
    plan = pinned(plan_of(options, seed_of(options, None)), default_policy())
    progress.step("attacking the training labels")
    estimates = list(_attacks(release, said, plan))
    claimed = None
    if release.declaration is not None:
        claimed = from_declaration(release.declaration, release.classes).epsilon
    bound, drawn, delta = 0.0, 0, gaussian_delta
    if release.canaries is not None:
        curve = None
        if delta is not None:
            curve = Curve(delta, gaussian_mu(claimed, delta) if claimed else None)
        found = of_canaries(release, said, release.canaries, plan, curve)
        drawn = int((~np.isnan(release.canaries).all(axis=1)).sum())
        bound = (found[0] if curve is None else found[-1]).value
        estimates += found
    excess = plan.max_undetected_excess.at(0.0 if claimed is None else claimed)
    return PredictionsAudit(
        schema_version=SCHEMA_VERSION,
        verdict=verdict_on(claimed, bound, excess) if drawn else "inconclusive",
        claimed_epsilon=claimed,
        max_undetected_excess=excess,
        rows=len(release),
        seed=plan.seed,
        canaries=drawn,
        gaussian_delta=delta if drawn else None,
        estimates=tuple(estimates),
    )


def _check(options: AuditOptions, delta: float | None) -> None:
    """Refuse options that are about a release of labels."""
    options.check()
    for field in fields(AuditOptions):
        if field.name not in _USED and getattr(options, field.name) != field.default:
            raise InputError(
                f"{option_name(options, field.name)} is about a release of labels; it says nothing "
                "about predictions."
            )
    if delta is not None and not 0 < delta < 1:
        raise InputError(
            f"The δ of Gaussian noise must lie between 0 and 1. Got {delta:g} instead."
        )
    if delta is not None and options.canaries is None:
        raise InputError("A bound under the curve of Gaussian noise needs --canaries.")
    if options.truth is None:
        raise InputError("Predictions need the table that the model was trained on (--truth).")


def _attacks(release: Release, said: FloatArray, plan: Plan) -> list[Estimate]:
    """Return how many labels are guessed with the probabilities and without, and the difference."""
    rng, table, alpha = (
        child_generator(plan.seed, "predictions"),
        release.features,
        1 - plan.confidence,
    )
    truth, n, k = release.released, len(release), len(release.classes)
    logs = np.log(np.maximum(said, _LEAST)).astype(np.float32)
    shown = FeatureTable(
        np.hstack([table.numeric, logs]),
        table.categorical,
        table.cardinalities,
        table.columns + k,
        table.extra,
    )
    halves = np.zeros(n, dtype=bool)
    halves[rng.permutation(n)[: n // 2]] = True
    right = {_STATED: said.argmax(axis=1) == truth, _ALONE: np.zeros(n, bool)}
    right[_LEARNT] = np.zeros(n, bool)
    for half in (halves, ~halves):
        for name, features in ((_ALONE, table), (_LEARNT, shown)):
            model = fit_posterior(features.take(half), truth[half], k, rng, plan.threads)
            guess = model.predict(features.take(~half)).argmax(axis=1)
            right[name][~half] = guess == truth[~half]
    commonest = Estimate.estimated(
        "predictions.commonest",
        "Rows with the commonest label",
        float(np.bincount(truth).max() / n),
        unit="proportion",
        n=n,
    )
    return [*_compared(right, halves, alpha), commonest]


def _compared(right: Mapping[str, BoolArray], halves: BoolArray, alpha: float) -> list[Estimate]:
    """Return the scores of the strongest attack and of the features alone, and the difference."""
    means = {name: float(found.mean()) for name, found in right.items()}
    attacks = {name: means[name] for name in (_STATED, _LEARNT)}

    def pair(without: str, attack: str) -> Folds:
        gain = right[attack].astype(np.float64) - right[without]
        return Folds((gain[halves], gain[~halves]))

    gain = best_interval(pair, {_ALONE: means[_ALONE]}, attacks, alpha)
    best = max(attacks, key=lambda name: attacks[name])
    how = {
        _STATED: "the class that the model finds likeliest",
        _LEARNT: "a model of the label by features and probabilities, learnt on the other half of "
        "the rows",
        _ALONE: "a model of the label by the true features, learnt on the other half of the rows",
    }
    titles = {
        best: ("predictions.accuracy", "Training labels guessed with the model's probabilities"),
        _ALONE: ("predictions.features_accuracy", "Training labels guessed from features alone"),
    }
    found = []
    for name, (identifier, title) in titles.items():
        count, n = int(right[name].sum()), len(halves)
        low, high = clopper_pearson(count, n, alpha / (len(attacks) if name == best else 1))
        found.append(
            Estimate.interval(
                identifier,
                title,
                means[name],
                (float(low), float(high)),
                1 - alpha,
                kind="estimated",
                unit="proportion",
                n=n,
                count=count,
                method=how[name],
                assumptions=_ASSUMED,
            )
        )
    difference = Estimate.interval(
        "predictions.gain",
        "What the probabilities add to the features",
        gain.value,
        (gain.low, gain.high),
        1 - alpha,
        kind="estimated",
        unit="proportion",
        n=gain.n,
        method="the same rows guessed by both; the stronger of two attacks, corrected",
        assumptions=(
            *_ASSUMED,
            "a model that knows better how labels depend on features gains by that, too",
        ),
        reference="Waudby-Smith & Ramdas (2024)",
    )
    return [*found, difference]


@dataclass(frozen=True)
class Curve:
    """The claim that training has the curve of Gaussian noise: μ, if ε is claimed, at δ."""

    delta: float
    mu: float | None


def of_canaries(
    release: Release, said: FloatArray, drawn: FloatArray, plan: Plan, curve: Curve | None = None
) -> list[Estimate]:
    """Return the certified bound of ε of the training by labels that the auditor drew."""
    # The guess is the label that the model favours most over the probability with which it was
    # drawn, or over what it says of similar rows: no true label has a part in it. Given the model
    # and the other labels a guess of probability p is right with at most p e^ε/(1 + p(e^ε − 1)), so
    # however rows depend on one another through the model, the right ones are at most such a
    # Poisson-binomial number.
    alpha, rng = 1 - plan.confidence, child_generator(plan.seed, "predictions", "canaries")
    rows = np.flatnonzero(~np.isnan(drawn).all(axis=1))
    check_canaries(drawn[rows], release.released[rows])
    rows = rows[drawn[rows].max(axis=1) < 1]
    if len(rows) < _FEWEST_CANARIES:
        raise InputError(
            f"There must be at least {_FEWEST_CANARIES} canaries with several possible labels. Got "
            f"{len(rows):,}."
        )
    prior, truth = drawn[rows], release.released[rows]
    way, lift = _lift(release, said, rows, prior)

    def guessed(share: float) -> tuple[FloatArray, BoolArray]:
        """Return the chances of the surest guesses, and which are right."""
        second, first = np.sort(lift, axis=1)[:, -2:].T
        surest = np.argsort(second - first, kind="stable")[: math.ceil(share * len(rows))]
        guess = lift[surest].argmax(axis=1)
        return prior[surest, guess], guess == truth[surest]

    def bound(share: float) -> float:
        chances, right = guessed(share)
        return max(shift_lower(chances, int(right.sum()), SHARES.of(alpha, share)), 0.0)

    bounds = {share: bound(share) for share in SHARES}
    share = max(SHARES, key=lambda one: bounds[one])
    chances, right = guessed(share)
    found = [
        Estimate.lower_bound(
            "predictions.epsilon_lower",
            "ε of the training, by labels that were drawn for it",
            bounds[share],
            plan.confidence,
            unit="nats",
            n=len(right),
            count=int(right.sum()),
            method="guesses of drawn labels: what the model's probabilities favour most over "
            f"{way} (Poisson-binomial tail), the surest {100 * share:g} %; corrected for "
            f"{len(SHARES)} shares",
            assumptions=("labels were drawn independently, with the given probabilities",),
            reference="Kalemaj et al. (2025); Steinke, Nasr & Jagielski (2023), Theorem 5.2",
        ),
        Estimate.estimated(
            "predictions.canary_guesses",
            "Drawn labels that were guessed",
            float(right.mean()),
            unit="proportion",
            n=len(right),
            count=int(right.sum()),
            method=f"by the probabilities they were drawn with: {chances.mean():.3f}",
        ),
    ]
    if curve is not None:
        coin, score = fair_coins(prior, truth, lift, rng)
        found.append(_under_curve(coin, score, curve, plan))
    return found


def _lift(
    release: Release, said: FloatArray, rows: IndexArray, prior: FloatArray
) -> tuple[str, FloatArray]:
    """Return over what, and by how much, the model favours each label of rows, float64 (r, k).

    Of two ways the one that varies less: what a drawn label adds is in both, and no label has a
    part in the choice. Labels that could not be drawn have −∞.
    """
    logs = np.log(np.maximum(said, _LEAST))
    with np.errstate(divide="ignore"):
        lifts = {"the probabilities they were drawn with": logs[rows] - np.log(prior)}
    if len(logs) >= _FEWEST_SIMILAR and logs.shape[1] <= _MOST_CLASSES:
        table = np.c_[release.features.numeric, release.features.categorical].astype(np.float64)
        logs = logs - logs.mean(axis=1, keepdims=True)
        alike = np.column_stack([expected(column, table) for column in logs.T[1:]])
        alike = np.c_[-alike.sum(axis=1), alike]
        lifts["what the model says of similar rows"] = (logs - alike)[rows]
    drawn = prior > 0
    shares = drawn / drawn.sum(axis=1, keepdims=True)

    def varies(lift: FloatArray) -> float:
        known = np.where(drawn, lift, 0.0)
        centred = np.where(drawn, known - (known * shares).sum(axis=1, keepdims=True), 0.0)
        return float(np.square(centred).sum())

    way = min(lifts, key=lambda one: varies(lifts[one]))
    return way, np.where(drawn, lifts[way], -np.inf)


def fair_coins(
    prior: FloatArray, truth: IntArray, lift: FloatArray, rng: np.random.Generator
) -> tuple[BoolArray, FloatArray]:
    """Return fair coins between two labels of drawn ones, (c,), and scores for the second, (c,).

    A row of label a, drawn with π_a, gets another label b with probability π_b/(1 − min π), and
    else is left out. So for each pair both orders are equally likely, a row that is kept is a fair
    coin between its two labels, and with two labels, or equal chances, as many are kept as can be.
    """
    everyone = np.arange(len(prior))
    least = np.where(prior > 0, prior, np.inf).min(axis=1)
    partners = prior / (1 - least)[:, None]
    partners[everyone, truth] = 0.0
    place = rng.random((len(prior), 1)) < np.cumsum(partners, axis=1)
    kept = np.flatnonzero(place[:, -1])
    other, own = place[kept].argmax(axis=1), truth[kept]
    low, high = np.minimum(own, other), np.maximum(own, other)
    score = lift[kept, high] - lift[kept, low]
    return own == high, score


def _under_curve(coin: BoolArray, score: FloatArray, curve: Curve, plan: Plan) -> Estimate:
    """Return the bound of ε at δ under the curve of Gaussian noise, by fair coins."""
    alpha, m = 1 - plan.confidence, len(coin)
    share = 0.1 if curve.mu is None else fixed_share(curve.mu, m, alpha)
    most = math.ceil(share * m)
    surest = np.argsort(-np.abs(score), kind="stable")[:most]
    surest = surest[score[surest] != 0]
    right = int(((score[surest] > 0) == coin[surest]).sum())
    counts = GuessCounts(m, right, most - right)
    value = epsilon_of_mu(one_run_mu(counts, alpha), curve.delta)
    return curve_estimate(CURVE_EPSILON, value, counts, plan.confidence, curve.delta)
