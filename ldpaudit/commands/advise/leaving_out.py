"""Columns to leave out: those that give labels or people away, whatever the noise on the label.

Small models of some of the rows that teach say which columns to drop, one at a time, the one
without which least is told of other rows that teach; what that did is shown on test rows.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ldpaudit.attacks.scoring import AUC, BALANCED_ACCURACY, score_fold
from ldpaudit.commands.advise.column import Column, Rows
from ldpaudit.commands.advise.result import Dropped
from ldpaudit.commands.privatize.scan import released_as_they_are
from ldpaudit.estimators.loss.instance_loss import mean_loss
from ldpaudit.judging.policy import Policy
from ldpaudit.models.label_model import fit_posterior
from ldpaudit.models.screening import association
from ldpaudit.randomness import child_generator
from ldpaudit.release import FloatArray
from ldpaudit.result import Estimate

_DECIDE: Final = "they reveal the label in every row, and privatize refuses them"
_NAME: Final = "they may lead back to a person (the policy's check identifiers)"
_TELL: Final = "with them the features alone reveal more of the labels than the policy allows"
_MOST_ROWS: Final = 4_000
# Columns that are tried in each round: those that go most clearly with the label.
_LOOKED: Final = 8
_MARGIN: Final = 0.97


def left_out(
    columns: Sequence[Column], policy: Policy, level: float, deadline: float
) -> tuple[list[Column], list[Dropped], bool]:
    """Return the columns with the features that stay, what is left out, and whether time sufficed.

    There is one table for all private columns, so what one needs to be left out is gone for all.
    """
    dropped: list[Dropped] = []
    left, searched = list(columns), True
    reasons: dict[str, Callable[[Column], tuple[str, ...]]] = {_DECIDE: _that_decide}
    if "identifiers" in policy.checks.asked():
        reasons[_NAME] = _that_name
    for place in range(len(left)):
        for reason, find in reasons.items():
            if names := find(left[place]):
                left = [one.without(names) for one in left]
                dropped.append(Dropped.of(names, reason))
    for place, column in enumerate(left):
        if stretch(column, policy, column.tested) > 1:
            names, done = _search(column, policy, deadline)
            searched &= done
            before = told_estimates(column, level) if names else ()
            left = [one.without(names) for one in left]
            if names:
                after = told_estimates(left[place], level)
                dropped.append(Dropped.of(names, _TELL, before, after))
    return left, dropped, searched


def _that_decide(column: Column) -> tuple[str, ...]:
    """Return the feature columns that tell the label in every row: ``privatize`` refuses them."""
    whole, label = column.tables.everything.table, column.tables.request.label
    looked = released_as_they_are(whole, label, column.request.keep, whole.schema.names)
    return tuple(looked.deciding())


def _that_name(column: Column) -> tuple[str, ...]:
    """Return the feature columns that may lead back to a person."""
    kept, every = column.request.keep, column.release.columns
    return tuple(one.name for one in every if one.concern is not None and one.name not in kept)


def stretch(column: Column, policy: Policy, rows: Rows) -> float:
    """Return how far beyond a limit the features alone are, 1 at the limit; 0 without any."""
    checks, worst = policy.checks, [0.0]
    reveal, right = checks.features_reveal_label, checks.label_inference_accuracy
    if reveal is not None and column.release.numeric is None:
        # Ranks a sample of many rows.
        fold = score_fold(
            rows.truth, rows.posterior, None, rate_alpha=0.05, rng=np.random.default_rng(0)
        )
        worst += [measure.value(fold) / reveal.max for measure in (AUC, BALANCED_ACCURACY)]
    if right is not None and column.release.numeric is None:
        worst.append(float(rows.alone.mean()) / max(right.max, 1e-9))
    loss = checks.instance_loss_exceedance
    if loss is not None and (at := loss.at.at(0.0)) is not None:
        exceeding = (mean_loss(rows.posterior, column.prior, None) >= at - 1e-9).mean()
        worst.append(float(exceeding) / max(loss.max, 1e-9))
    return max(worst)


def told_estimates(column: Column, level: float) -> tuple[Estimate, ...]:
    """Return what the features alone reveal about the test rows."""
    rows, tail = column.tested, (1 - level) / 2
    fold = score_fold(
        rows.truth, rows.posterior, None, rate_alpha=tail, rng=np.random.default_rng(0)
    )
    found = []
    for measure in (BALANCED_ACCURACY, AUC):
        value, low, high = measure.value(fold), measure.lower(fold, tail), measure.upper(fold, tail)
        found.append(
            Estimate.interval(
                f"advice.features_{measure.name}",
                f"{measure.title} of an attacker who sees the features alone",
                value,
                (min(low, value), max(high, value)),
                level,
                section="leakage",
                unit="proportion",
                n=fold.n,
                method=measure.method,
                assumptions=(
                    "rows are independent",
                    "the attacker knows other people's true labels",
                ),
            )
        )
    return tuple(found)


def _search(column: Column, policy: Policy, deadline: float) -> tuple[tuple[str, ...], bool]:
    """Return columns to leave out so that little enough is told, and whether time sufficed."""
    rng = child_generator(column.tables.seed, "advise", "columns")
    order = rng.permutation(column.tables.training.num_rows)
    cut = min(len(order) // 2, _MOST_ROWS)
    taught, asked = np.sort(order[:cut]), np.sort(order[cut : cut + _MOST_ROWS])
    release, truth = column.release, column.truth
    keep = column.request.keep
    arrays = {one.name: one.arrays for one in release.columns if one.arrays}
    left = {name: places for name, places in arrays.items() if name not in keep}
    if not left:
        return (), True
    clear: FloatArray = association(release.features.take(taught), truth[taught])
    gone: list[int] = []
    names: list[str] = []

    def told(places: list[int]) -> float:
        features = release.features.without(places)
        few = np.random.default_rng(column.tables.seed)
        model = fit_posterior(features.take(taught), truth[taught], len(release.classes), few, 1)
        rows = Rows(model.predict(features.take(asked)), truth[asked])
        return stretch(column, policy, rows)

    if told([place for places in left.values() for place in places]) > 1:
        return (), True  # What is kept tells too much by itself.
    while told(gone) > _MARGIN and left:
        if time.monotonic() > deadline:
            return tuple(names), False
        looked = sorted(left, key=lambda name: -max(clear[place] for place in left[name]))
        tried = {name: told([*gone, *left[name]]) for name in looked[:_LOOKED]}
        best = min(tried, key=lambda name: tried[name])
        gone += left.pop(best)
        names.append(best)
    # Of columns that say the same the first may have been left out for nothing.
    for name in names[:-1]:
        others = [place for other in names if other != name for place in arrays[other]]
        if time.monotonic() < deadline and told(others) <= _MARGIN:
            names.remove(name)
    return tuple(names), True
