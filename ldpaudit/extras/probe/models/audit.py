"""``ldpaudit.audit_model``: what training reveals about the labels that it was given."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, SupportsFloat

import numpy as np

from ldpaudit.claim import declaration_of
from ldpaudit.doors import (
    Estimate,
    FloatArray,
    IndexArray,
    InputError,
    Mechanism,
    child_generator,
    clopper_pearson,
    from_declaration,
)
from ldpaudit.error_budget import Split
from ldpaudit.estimators.epsilon.guesses import GuessCounts
from ldpaudit.extras.kinds.noisy_features.one_run import detectable_in_one_run, one_run_epsilon
from ldpaudit.extras.kinds.noisy_features.tradeoff import (
    epsilon_of_mu,
    fixed_share,
    gaussian_mu,
    independent_mu,
    one_run_mu,
)
from ldpaudit.extras.probe.models.game import (
    Coins,
    Fit,
    farthest,
    numeric,
    probabilities,
    scores,
    which_label,
)
from ldpaudit.extras.probe.models.result import CURVE_REFERENCE, SCHEMA_VERSION, ModelAudit
from ldpaudit.extras.probe.sequential import anytime_epsilon, refutes
from ldpaudit.release import BoolArray
from ldpaudit.result import Verdict

_CHOOSING: Final = 0.25
"""Of one person's runs: these show how to guess, the others test it."""
SHARES: Final = Split({1.0: 0.6} | dict.fromkeys((0.5, 0.2, 0.1, 0.05, 0.02, 0.01), 0.4 / 6))
"""Of the coins, those guessed, where the model is surest; and each one's part of the error."""
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
    curve: Literal["gaussian"] | None = None,
    group: Any = None,
    share: float = 0.5,
    runs: int = 1,
    stop_early: bool = False,
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
    curve : {"gaussian"}, optional
        The claim is the whole curve of δ against ε that Gaussian noise has which is (ε, δ)-DP at
        the claimed ε and ``delta``: μ-Gaussian differential privacy, a stronger claim than its one
        point. It is then judged by the bound of ε at ``delta`` under that curve, which is larger.
    group : array or Series of shape (n,), optional
        Rows with the same value belong to one person and share a coin; ε is then a person's.
    share : float
        The share of people with a coin, in (0, 1].
    runs : int
        How often the procedure runs, each time on fresh coins. More runs find smaller excesses; the
        noise must be drawn again in each of them, never from a fixed seed.
    stop_early : bool
        After each run, end where the claim is refuted. The bound is then of a test that may look
        after every run, at the same confidence, and somewhat smaller if all runs are needed.
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
    Steinke, Nasr & Jagielski (2023), "Privacy auditing with one (1) training run", Theorem 5.2;
    Mahloujifar, Melis & Chaudhuri (2025), "Auditing f-differential privacy in one run", for
    ``curve``; Ville (1939), for ``stop_early``.

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
    _check_claim(claimed, delta, curve, stop_early, runs)
    if getattr(X, "shape", (len(codes),))[0] != len(codes):
        raise InputError(f"X and y must have the same rows. Got {X.shape[0]:,} and {len(codes):,}.")
    table = numeric(X, len(codes))
    alpha = 1 - confidence

    def trained(coins: Coins) -> FloatArray:
        return probabilities(fit, X, _like(y, classes[coins.labels(codes)]), classes)

    def ended(looks: Sequence[tuple[int, int]]) -> bool:
        return stop_early and claimed is not None and refutes(looks, claimed, alpha)

    if one_person:
        person = farthest(table, unit)
        given, looks = _alone(trained, codes, unit == person, runs, seed, ended)
        counts = GuessCounts(len(looks), *looks[-1])
        bound = one_run_epsilon(counts, alpha, delta)
        if stop_early:
            bound = anytime_epsilon(looks, alpha)
        under = None if curve is None else epsilon_of_mu(independent_mu(counts, alpha), delta)
        found = _Found(
            *(_ALONE, given, len(looks), given, counts, bound, alpha, under, counts, stop_early)
        )
    else:
        if runs > 1:
            _check_fresh(fit, X, y, classes)
        played: list[_Played] = []
        looks = []
        for run in range(runs):
            rng = child_generator(seed, "model", f"run-{run}")
            coins = Coins.flipped(codes, unit, share, rng)
            if len(coins.coin) * runs < _FEWEST:
                raise InputError(
                    f"There must be at least {_FEWEST} people with a coin. Got "
                    f"{len(coins.coin) * runs}; raise share or runs."
                )
            played.append(_Played(coins.coin, *scores(coins, trained(coins), table)))
            if stop_early:
                looks.append(_look(played, looks, alpha))
                if ended(looks):
                    break
        found = _found(played, looks, claimed, curve, alpha, delta)
    bound = found.bound if found.curve is None else found.curve
    return ModelAudit(
        schema_version=SCHEMA_VERSION,
        verdict=verdict_on(claimed, bound, max_undetected_excess),
        claimed_epsilon=claimed,
        claimed_delta=delta,
        curve=curve,
        max_undetected_excess=max_undetected_excess,
        rows=len(codes),
        candidates=found.candidates,
        runs=found.runs,
        seed=seed,
        one_person=one_person,
        stop_early=stop_early,
        estimates=_estimates(found, confidence, claimed, delta),
        rule=found.rule,
    )


@dataclass(frozen=True)
class _Found:
    """What the guesses of coins came to."""

    rule: str
    candidates: int
    tested: int
    """The coins that could be guessed."""
    runs: int
    counts: GuessCounts
    """The guesses behind ``bound``, of ε at 1 − ``level``."""
    bound: float
    level: float
    curve: float | None = None
    """The bound of ε under a claimed curve, by ``curve_counts``."""
    curve_counts: GuessCounts | None = None
    sequential: bool = False


def _alone(
    trained: Callable[[Coins], FloatArray],
    codes: IndexArray,
    person: BoolArray,
    runs: int,
    seed: int,
    ended: Callable[[Sequence[tuple[int, int]]], bool],
) -> tuple[int, list[tuple[int, int]]]:
    """Return how often training ran, and how many coins of one person were guessed by each look.

    The coins of the first runs are known and show how to guess.
    """
    rng, rows = child_generator(seed, "model", "one-person"), np.flatnonzero(person)
    given = Coins.of_one(codes, rows, rng)
    learning = math.ceil(_CHOOSING * runs)
    coins = np.r_[np.arange(learning) % 2 == 1, rng.random(runs - learning) < 0.5]

    def said(coin: bool) -> FloatArray:
        return np.asarray(np.log(trained(given.fallen(coin))[rows] + _LEAST).ravel())

    known = np.array([said(coin) for coin in coins[:learning]])
    right = wrong = 0
    looks: list[tuple[int, int]] = []
    for coin in coins[learning:]:
        guess = float(which_label(known, coins[:learning], said(coin)[None])[0])
        right += int(guess != 0 and (guess > 0) == coin)
        wrong += int(guess != 0 and (guess > 0) != coin)
        looks.append((right, wrong))
        if ended(looks):
            break
    return learning + len(looks), looks


def _most(share: float) -> str:
    return "every coin" if share == 1 else f"the {100 * share:g} % of coins that it is surest of"


@dataclass(frozen=True, eq=False)
class _Played:
    """One run: its coins, by which method they are guessed, and what the model says of them."""

    coin: BoolArray
    way: str
    scores: FloatArray

    def guesses(self, share: float) -> tuple[int, int, int]:
        """Return how many coins may be guessed, and how many guesses are right and wrong."""
        most = math.ceil(share * len(self.scores))
        surest = np.argsort(-np.abs(self.scores), kind="stable")[:most]
        surest = surest[self.scores[surest] != 0]
        right = int(((self.scores[surest] > 0) == self.coin[surest]).sum())
        return most, right, len(surest) - right


def _counts(played: Sequence[_Played], share: float, *, fixed: bool) -> GuessCounts:
    """Return how many guesses are right and wrong, over all runs.

    ``fixed``: as under δ, where the number of guesses must not depend on the output: a coin that
    the output says nothing of counts as a wrong guess.
    """
    most, right, wrong = np.sum([one.guesses(share) for one in played], axis=0, dtype=int).tolist()
    return GuessCounts(
        sum(len(one.coin) for one in played), right, most - right if fixed else wrong
    )


def _look(
    played: Sequence[_Played], looks: Sequence[tuple[int, int]], alpha: float
) -> tuple[int, int]:
    """Return all right and wrong guesses so far; the last run's by the best share of the others."""
    before, share = played[:-1], 1.0
    if before:
        counts = {one: _counts(before, one, fixed=False) for one in SHARES}
        share = max(SHARES, key=lambda one: one_run_epsilon(counts[one], SHARES.of(alpha, one)))
    _, right, wrong = played[-1].guesses(share)
    last = looks[-1] if looks else (0, 0)
    return last[0] + right, last[1] + wrong


def _found(
    played: Sequence[_Played],
    looks: Sequence[tuple[int, int]],
    claimed: float | None,
    curve: str | None,
    alpha: float,
    delta: float,
) -> _Found:
    """Return the bounds of all runs; the shares of coins to guess share the error probability."""
    candidates, way = sum(len(one.coin) for one in played), played[-1].way
    if looks:
        right, wrong = looks[-1]
        counts, bound = GuessCounts(candidates, right, wrong), anytime_epsilon(looks, alpha)
        rule = f"{_RULES[way]}, for as many coins as were best in earlier runs"
        spent = len(played), counts, bound, alpha, None, None, True
        return _Found(rule, candidates, candidates, *spent)
    every = {share: _counts(played, share, fixed=delta > 0) for share in SHARES}
    bounds = {
        share: one_run_epsilon(every[share], SHARES.of(alpha, share), delta) for share in SHARES
    }
    best = max(SHARES, key=lambda share: bounds[share])
    rule, under, guessed = f"{_RULES[way]}, for {_most(best)}", None, None
    if curve is not None:
        share = 0.1
        if claimed is not None:
            share = fixed_share(gaussian_mu(claimed, delta), candidates, alpha)
        guessed = _counts(played, share, fixed=True)
        under = epsilon_of_mu(one_run_mu(guessed, alpha), delta)
    return _Found(
        *(rule, candidates, candidates, len(played), every[best], bounds[best]),
        *(SHARES.of(alpha, best), under, guessed),
    )


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
    found: _Found, confidence: float, claimed: float | None, delta: float
) -> tuple[Estimate, ...]:
    counts, right, alpha = found.counts, found.counts.right, 1 - confidence
    low, high = clopper_pearson(right, counts.guesses, alpha / 2)
    ends = float(low), float(high)
    share = right / counts.guesses if counts.guesses else 0.5
    method = "correct guesses of coins against a binomial bound, one run of training or more"
    estimates = [
        Estimate.lower_bound(
            "model.epsilon",
            "ε of training, by guesses of coins",
            found.bound,
            confidence,
            unit="nats",
            n=counts.guesses,
            count=right,
            method=f"{method}; a test that looks after each run" if found.sequential else method,
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
            counts.guesses / max(found.tested, 1),
            unit="proportion",
        ),
    ]
    if found.curve is not None and found.curve_counts is not None:
        estimates.append(
            curve_estimate(
                "model.curve_epsilon", found.curve, found.curve_counts, confidence, delta
            )
        )
    if claimed is not None and not found.sequential:
        least = detectable_in_one_run(counts, claimed, found.level, delta)
        estimates.append(
            Estimate.estimated(
                "model.detectable",
                "ε that these guesses would find, if they show all of it",
                least,
                unit="nats",
            )
        )
    return tuple(estimates)


def curve_estimate(
    name: str, value: float, counts: GuessCounts, confidence: float, delta: float
) -> Estimate:
    """Return a bound of ε at δ under the curve of Gaussian noise."""
    return Estimate.lower_bound(
        name,
        "ε of training, if its curve is that of Gaussian noise",
        value,
        confidence,
        unit="nats",
        n=counts.guesses,
        count=counts.right,
        method=f"right guesses under μ-Gaussian differential privacy, as ε at δ = {delta:g}; how "
        "many are guessed was fixed beforehand",
        assumptions=("the claim is the whole curve of Gaussian noise, not one point (ε, δ) of it",),
        reference=CURVE_REFERENCE,
    )


def _labels(y: Any) -> tuple[np.ndarray, IndexArray]:
    """Return the classes in order, and the code of each label."""
    import pandas as pd

    if np.ndim(y) != 1:
        raise InputError("The labels must be one column, with one label for each row.")
    series = y if isinstance(y, pd.Series) else pd.Series(np.asarray(y))
    if series.isna().any():
        raise InputError(
            f"Every label must be known; missing labels: {int(series.isna().sum()):,}."
        )
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


def _check_claim(
    claimed: float | None, delta: float, curve: str | None, stop_early: bool, runs: int
) -> None:
    if curve not in (None, "gaussian"):
        raise InputError("curve must be 'gaussian', or None.")
    if curve is not None and not (delta > 0 and (claimed is None or claimed > 0)):
        raise InputError("A claimed curve must have ε above 0 at a delta above 0.")
    if stop_early and (claimed is None or delta > 0 or runs < 2):
        raise InputError(
            "To stop early there must be a claim of pure ε (delta = 0) and at least two runs."
        )


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
