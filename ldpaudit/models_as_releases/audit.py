"""``ldpaudit.audit_model``: what training reveals about the labels that it was given."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, SupportsFloat

import numpy as np

from ldpaudit.arrays import BoolArray, FloatArray, IndexArray
from ldpaudit.claim import declaration_of
from ldpaudit.errors import InputError
from ldpaudit.estimators.epsilon.guesses import GuessCounts, detectable_in_one_run, one_run_epsilon
from ldpaudit.estimators.intervals.binomial import clopper_pearson
from ldpaudit.mechanisms import Mechanism, from_declaration
from ldpaudit.models_as_releases.game import (
    Coins,
    Fit,
    farthest,
    numeric,
    probabilities,
    scores,
    which_label,
)
from ldpaudit.models_as_releases.result import SCHEMA_VERSION, ModelAudit
from ldpaudit.randomness import child_generator
from ldpaudit.result import Estimate, Verdict

CHOOSING: Final = 0.25
"""Of the candidates: these choose the rule, the others test it."""
SHARES: Final = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
"""Of the coins, those guessed: where the model is surest."""
_FEWEST: Final = 40
_LEAST: Final = 1e-9
"""Added to a probability before its logarithm is taken."""
_FEWEST_RUNS: Final = 20
"""Of one person's coin."""
_RULES: Final = {
    "likelihood": "the likelier label by the model's probabilities",
    "memory": "the label that the model's probabilities favour more than for similar rows",
}
_ALONE: Final = (
    "with which of two labels of one person, the one with the most unusual features, the model was "
    "trained: that whose models in the first runs give this person more similar probabilities"
)
_REFERENCE: Final = "Steinke, Nasr & Jagielski (2023), Theorem 5.2"


def audit_model(
    fit: Fit,
    X: Any,
    y: Any,
    claim: "str | float | Mechanism | None" = None,
    *,
    delta: float = 0.0,
    group: Any = None,
    share: float = 0.5,
    runs: int = 1,
    one_person: bool = False,
    confidence: float = 0.95,
    max_undetected_excess: float = 0.5,
    seed: int = 0,
) -> ModelAudit:
    """Audit a training procedure: how much does its model reveal about a label it was trained on?

    Coins decide whether people of a random part of the rows keep their true labels or get others.
    The whole procedure runs on these labels, and the probabilities that its model gives for its own
    training rows are used to guess the coins. Features tell nothing of a coin, so every guess that
    is right more often than one in two comes from the labels that the model has seen; ε-label-DP
    bounds how often that can be.

    Parameters
    ----------
    fit : callable
        ``fit(X, y)``: the whole procedure, its noise included; it returns a model with
        ``predict_proba(X)``, of shape (n, k), and perhaps ``classes_``. Any framework.
    X : table or array of n rows
        Handed to ``fit`` and ``predict_proba`` as it is.
    y : array or Series of shape (n,)
        The true labels, of k ≥ 2 classes. ``fit`` gets labels of the same type.
    claim : str, float or Mechanism, optional
        What was promised of each label, with ``group`` of each person: ε in nats, or a mechanism
        such as ``"rr:epsilon=1"`` on the labels of ``y``.
    delta : float
        δ of the (ε, δ)-DP that is claimed, in [0, 1).
    group : array or Series of shape (n,), optional
        Rows with the same value belong to one person and share a coin; ε is then a person's.
    share : float
        The share of people with a coin, in (0, 1].
    runs : int
        How often the procedure runs, each time on fresh coins. More runs find smaller excesses; the
        noise must be drawn again in each of them, never from a fixed seed.
    one_person : bool
        One person has a coin, anew in each of ``runs`` runs (20 or more), and everybody else's
        label is the true one. This finds what a model reveals that hardly remembers single labels,
        such as a logistic regression. Noise from a fixed seed counts as none.
    confidence : float
        Of the certified bound, one-sided, in (0, 1).
    max_undetected_excess : float
        Nats; an audit whose bound stays further below the claim is inconclusive.
    seed : int
        Of the coins.

    Returns
    -------
    ModelAudit
        With ``verdict``, ``sentence``, ``estimates``; ``to_html()``, ``to_json()``, ``to_frame()``.

    Raises
    ------
    ldpaudit.errors.InputError
        One clear line about what is wrong with the labels, the claim or the procedure.

    References
    ----------
    Steinke, Nasr & Jagielski (2023), "Privacy auditing with one (1) training run", Theorem 5.2.

    Examples
    --------
    >>> import ldpaudit
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from ldpaudit.datasets import affairs
    >>> features, truth = affairs()
    >>> def fit(X, y):  # The promise was ε = 1, but the labels are used as they are.
    ...     return RandomForestClassifier(20, random_state=0).fit(X, y)
    >>> ldpaudit.audit_model(fit, features, truth, "rr:epsilon=1").verdict
    'fail'
    """
    _check(delta, share, runs, confidence, max_undetected_excess, seed)
    if one_person and runs < _FEWEST_RUNS:
        raise InputError(f"With one_person there must be at least {_FEWEST_RUNS} runs. Got {runs}.")
    classes, codes = _labels(y)
    unit = _units(group, len(codes))
    claimed = _claimed(claim, classes)
    if getattr(X, "shape", (len(codes),))[0] != len(codes):
        raise InputError(f"X and y must have the same rows. Got {X.shape[0]:,} and {len(codes):,}.")
    table = numeric(X, len(codes))
    alpha = 1 - confidence

    def trained(coins: Coins) -> FloatArray:
        return probabilities(fit, X, _like(y, classes[coins.labels(codes)]), classes)

    if one_person:
        person = farthest(table, unit)
        counts = _alone(trained, codes, unit == person, runs, seed)
        rule, candidates, tested = _ALONE, runs, counts.candidates
    else:
        if runs > 1:
            _check_fresh(fit, X, y, classes)
        played = []
        for run in range(runs):
            rng = child_generator(seed, "model", f"run-{run}")
            coins = Coins.flipped(codes, unit, share, rng)
            found = scores(coins, trained(coins), table)
            played.append(_Played(coins.coin, found, rng.random(len(coins.coin))))
        candidates, tested = sum(len(one.coin) for one in played), _tested(played)
        if candidates < _FEWEST:
            raise InputError(
                f"There must be at least {_FEWEST} people with a coin. Got {candidates}; raise "
                "share or runs."
            )
        way, guessed = _rule(played, alpha, delta)
        counts = _counts(played, way, guessed, testing=True)
        rule = f"{_RULES[way]}, for {_most(guessed)}"
    bound = one_run_epsilon(counts, alpha, delta)
    return ModelAudit(
        schema_version=SCHEMA_VERSION,
        verdict=verdict_on(claimed, bound, max_undetected_excess),
        claimed_epsilon=claimed,
        claimed_delta=delta,
        max_undetected_excess=max_undetected_excess,
        rows=len(codes),
        candidates=candidates,
        runs=runs,
        seed=seed,
        one_person=one_person,
        estimates=_estimates(counts, bound, confidence, claimed, delta, tested),
        rule=rule,
    )


def _alone(
    trained: Callable[[Coins], FloatArray],
    codes: IndexArray,
    person: BoolArray,
    runs: int,
    seed: int,
) -> GuessCounts:
    """Return how many coins of one person are guessed rightly, after runs with known coins."""
    rng, rows = child_generator(seed, "model", "one-person"), np.flatnonzero(person)
    given = Coins.of_one(codes, rows, rng)
    learning = math.ceil(CHOOSING * runs)
    coins = np.r_[np.arange(learning) % 2 == 1, rng.random(runs - learning) < 0.5]
    said = np.array([np.log(trained(given.fallen(coin))[rows] + _LEAST).ravel() for coin in coins])
    guess = which_label(said[:learning], coins[:learning], said[learning:])
    right = int(((guess > 0) == coins[learning:])[guess != 0].sum())
    return GuessCounts(runs - learning, right, int((guess != 0).sum()) - right)


def _most(share: float) -> str:
    return "every coin" if share == 1 else f"the {100 * share:g} % of coins that it is surest of"


@dataclass(frozen=True, eq=False)
class _Played:
    """One run: its coins, what the model says of them by method, and who chooses the rule."""

    coin: BoolArray
    scores: dict[str, FloatArray]
    order: FloatArray

    def guesses(self, way: str, share: float, testing: bool) -> BoolArray:
        """Return which of the guesses are right, of the candidates that test or choose the rule."""
        part = (self.order >= CHOOSING) == testing
        score, coin = self.scores[way][part], self.coin[part]
        surest = np.argsort(-np.abs(score), kind="stable")[: math.ceil(share * len(score))]
        surest = surest[score[surest] != 0]
        return np.asarray((score[surest] > 0) == coin[surest])


def _counts(played: Sequence[_Played], way: str, share: float, *, testing: bool) -> GuessCounts:
    """Return how many guesses are right and wrong, over all runs."""
    right = np.concatenate([one.guesses(way, share, testing) for one in played])
    candidates = sum(len(one.coin) for one in played)
    return GuessCounts(candidates, int(right.sum()), int((~right).sum()))


def _rule(played: Sequence[_Played], alpha: float, delta: float) -> tuple[str, float]:
    """Return the method and the share of coins to guess that bound ε best on the choosing part."""
    options = [(way, share) for way in played[0].scores for share in SHARES]
    alpha /= len(options)  # The best of several by luck alone tests worse.
    return max(
        options,
        key=lambda one: one_run_epsilon(_counts(played, *one, testing=False), alpha, delta),
    )


def _tested(played: Sequence[_Played]) -> int:
    """Return how many candidates test the rule."""
    return sum(int((one.order >= CHOOSING).sum()) for one in played)


def _check_fresh(fit: Fit, X: Any, y: Any, classes: np.ndarray) -> None:
    """Refuse a procedure that repeats its noise: its runs would count the same noise again."""
    one, two = (probabilities(fit, X, y, classes) for _ in range(2))
    if np.array_equal(one, two):
        raise InputError(
            "The same labels gave the same model twice, so fit(X, y) draws no new noise in each "
            "run; draw it again in each call, or use runs=1."
        )


def verdict_on(claimed: float | None, bound: float, excess: float) -> Verdict:
    """Return what a bound of ε says of a claim, of which ``excess`` may go unnoticed."""
    if claimed is None:
        return "inconclusive"
    if bound > claimed:
        return "fail"
    return "pass" if bound >= claimed - excess else "inconclusive"


def _estimates(
    counts: GuessCounts,
    bound: float,
    confidence: float,
    claimed: float | None,
    delta: float,
    tested: int,
) -> tuple[Estimate, ...]:
    right, alpha = counts.right, 1 - confidence
    low, high = clopper_pearson(right, counts.guesses, alpha / 2)
    ends = float(low), float(high)
    share = right / counts.guesses if counts.guesses else 0.5
    found = [
        Estimate.lower_bound(
            "model.epsilon",
            "ε of training, by guesses of coins",
            bound,
            confidence,
            unit="nats",
            n=counts.guesses,
            count=right,
            method="correct guesses of coins against a binomial bound, one run of training or more",
            reference=_REFERENCE,
        ),
        Estimate.interval(
            "model.guesses",
            "Guesses of coins that are right (features alone: 50 %)",
            share,
            ends if counts.guesses else (0.0, 1.0),
            confidence,
            kind="estimated",
            unit="proportion",
            n=counts.guesses,
            count=right,
        ),
        Estimate.estimated(
            "model.guessed",
            "Coins that are guessed",
            counts.guesses / max(tested, 1),
            unit="proportion",
        ),
    ]
    if claimed is not None:
        least = detectable_in_one_run(counts, claimed, alpha, delta)
        found.append(
            Estimate.estimated(
                "model.detectable",
                "ε that these guesses would find, if they show all of it",
                least,
                unit="nats",
            )
        )
    return tuple(found)


def _labels(y: Any) -> tuple[np.ndarray, IndexArray]:
    """Return the classes in order, and the code of each label."""
    import pandas as pd

    if np.ndim(y) != 1:
        raise InputError("The labels must be one column, with one label for each row.")
    series = y if isinstance(y, pd.Series) else pd.Series(np.asarray(y))
    if series.isna().any():
        raise InputError(f"Every label must be known; {int(series.isna().sum()):,} are missing.")
    try:
        classes, codes = np.unique(series.to_numpy(), return_inverse=True)
    except TypeError:
        raise InputError("The labels must be of one kind: all numbers, or all text.") from None
    if len(classes) < 2:
        raise InputError(f"There must be at least two classes of labels. Got {len(classes)}.")
    return classes, codes.astype(np.int64)


def _like(y: Any, labels: np.ndarray) -> Any:
    """Return labels in the form of the given ones."""
    import pandas as pd
    import pyarrow as pa

    if isinstance(y, pd.Series):
        return pd.Series(labels, index=y.index, name=y.name).astype(y.dtype)
    if isinstance(y, np.ndarray):
        return labels
    if isinstance(y, pa.Array | pa.ChunkedArray):
        return pa.array(labels.tolist(), y.type)
    return type(y)(labels.tolist())


def _units(group: Any, n: int) -> IndexArray:
    """Return which candidate each row belongs to, numbered from 0."""
    import pandas as pd

    if group is None:
        return np.arange(n)
    values = pd.Series(np.asarray(group).ravel())
    if len(values) != n:
        raise InputError(f"group must have one value for each of {n:,} rows. Got {len(values):,}.")
    if values.isna().any():
        raise InputError("Every row must have a group; some have none.")
    return np.asarray(pd.factorize(values)[0], dtype=np.int64)


def _claimed(claim: Any, classes: np.ndarray) -> float | None:
    """Return the claimed ε in nats, None where nothing is claimed."""
    if claim is None:
        return None
    if isinstance(claim, SupportsFloat) and type(claim) is not bool:
        epsilon: float | None = float(claim)
    else:
        mechanism = from_declaration(declaration_of(claim), tuple(classes.tolist()))
        epsilon, channel = mechanism.epsilon, mechanism.channel
        if channel is not None and {*channel.classes} != {*classes.tolist()}:
            raise InputError("The claim's mechanism must be on the labels of y; it is on others.")
    if epsilon is None or not 0 <= epsilon < math.inf:
        raise InputError("The claim must have a finite ε of at least 0: 1.0, or 'rr:epsilon=1'.")
    return epsilon


def _check(
    delta: float, share: float, runs: int, confidence: float, excess: float, seed: int
) -> None:
    if not 0 <= delta < 1:
        raise InputError(f"delta must lie in [0, 1). Got {delta:g} instead.")
    if not 0 < share <= 1:
        raise InputError(f"share must lie in (0, 1]. Got {share:g} instead.")
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie in (0, 1). Got {confidence:g} instead.")
    counts: tuple[Any, ...] = (runs, seed)
    whole = all(isinstance(one, int | np.integer) for one in counts)
    if not whole or runs < 1 or seed < 0:
        raise InputError(
            "runs must be a whole number from 1 up, and the seed a whole number from 0 up."
        )
    if not excess > 0:
        raise InputError(f"max_undetected_excess must be above 0. Got {excess:g} instead.")
