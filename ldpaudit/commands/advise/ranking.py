"""What is known of mechanisms without drawing any noise: which come first, and how far to go."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.commands.advise.column import Column
from ldpaudit.commands.sweep.points import mechanism_at
from ldpaudit.commands.sweep.request import Point
from ldpaudit.errors import LdpAuditError
from ldpaudit.estimators.label_inference.advantage import advantage_ceiling
from ldpaudit.judging.policy import Policy
from ldpaudit.judging.policy.sections import CLAIM
from ldpaudit.mechanisms.analysis import label_errors
from ldpaudit.mechanisms.interface import Mechanism, Traits
from ldpaudit.mechanisms.label_range import nearest
from ldpaudit.mechanisms.registry import applicable, traits_of
from ldpaudit.models.corrections import unbiased_values
from ldpaudit.release import FloatArray

# ε in nats that are tried, the most noise first: 0.05 to 8.
GRID: Final = (
    *(place / 20 for place in range(1, 21)),
    *(place / 10 for place in range(11, 21)),
    *(place / 4 for place in range(9, 17)),
    *(place / 2 for place in range(9, 17)),
)
# ε at which mechanisms are ranked, and tried first where nothing limits it.
_USUAL: Final = 1.0
# Mechanisms that are simulated, the best by closed form, and recommendations at most.
MOST: Final = 3
_LEAST: Final = 1e-9
# Costs that differ by no more count as equal: then there is no reason to spend more ε.
_TOLERANCE: Final = {"classification": 0.001, "regression": 0.001, "counts": 0.0005}

# A mechanism at an ε for each private column.
Parts = tuple[Point, ...]


def words(parts: Parts) -> str:
    """Return mechanisms and their ε."""
    return ", ".join(f"{one.mechanism} ε = {one.value:g}" for one in parts)


def spent(parts: Parts) -> float:
    """Return what the whole release costs a person, in nats."""
    return math.fsum(one.value for one in parts)


@dataclass(frozen=True)
class Line:
    """Releases with ever less noise, and the place of the one to try first."""

    parts: tuple[Parts, ...]
    start: int


def lines(columns: Sequence[Column], policy: Policy) -> list[Line]:
    """Return what to simulate: for one private column the best mechanisms, each at every ε.

    For several columns the best mechanism of each, with ε shared out among them.
    """
    most = largest_epsilon(policy, len(columns[0].release.classes))
    grid = [epsilon for epsilon in GRID if epsilon <= most]
    grid += [most] if most < GRID[-1] and most not in grid else []
    ranked = [_ranked(column, grid) for column in columns]
    made: list[tuple[Parts, ...]]
    if len(columns) == 1:
        made = [tuple((point,) for point in one) for one in ranked[0]]
    else:
        made = [_together(columns, [one[0] for one in ranked if one], grid, most)]
    worthy = [_no_dearer(columns, one) for one in made if one]
    return [Line(one, _start(columns, one, policy, most)) for one in worthy]


def _no_dearer(columns: Sequence[Column], line: tuple[Parts, ...]) -> tuple[Parts, ...]:
    """Return a line up to where still more ε is expected to be worth no more."""

    def total(place: int) -> float:
        return math.fsum(map(cost, columns, line[place]))

    enough = total(-1) + sum(_TOLERANCE[column.request.use] for column in columns)
    if not math.isfinite(enough):
        return line
    return line[: bisect_left(range(len(line)), True, key=lambda place: total(place) <= enough) + 1]


def largest_epsilon(policy: Policy, classes: int) -> float:
    """Return the most ε that a policy allows the whole release; ∞ where it states none."""
    claim = policy.of_all().claim
    stated = {} if claim is None else claim.declaration().parameters
    if "lambda" in stated:
        return math.log1p(classes * (1 - stated["lambda"]) / stated["lambda"])
    return float(stated.get("epsilon", math.inf))


def _ranked(column: Column, grid: Sequence[float]) -> list[list[Point]]:
    """Return the mechanisms that the labels allow at every ε, the most useful for its ε first."""
    usual = max(len([epsilon for epsilon in grid if epsilon <= _USUAL]) - 1, 0)
    found = []
    for name in applicable():
        if _fits(traits_of(name), numeric=column.release.numeric is not None):
            points = [Point(name, "epsilon", epsilon, 1) for epsilon in grid]
            found.append((cost(column, points[usual]), points))
    best = sorted((one for one in found if math.isfinite(one[0])), key=lambda one: one[0])
    return [points for _, points in best[:MOST]]


def _fits(traits: Traits, *, numeric: bool) -> bool:
    return (
        traits.swept
        and traits.numeric == numeric
        and traits.features == "unchanged"
        and traits.rows == "independent"
        and not traits.label_depends_on_features
        and "epsilon" in traits.stated_by
    )


def cost(column: Column, point: Point) -> float:
    """Return what a mechanism's noise costs the wanted use, the less the better; ∞: of no use."""
    try:
        mechanism = mechanism_at(column.tables, point)
    except LdpAuditError:
        return math.inf
    if column.request.use == "counts":
        return share_error(column.prior, column.channel(mechanism), column.rows)
    if column.release.numeric is not None:
        return _numbers_cost(column, mechanism)
    share = information_share(column.tested.posterior, column.channel(mechanism))
    return _excess(column, share) if share > 0 else math.inf


def _excess(column: Column, share: float) -> float:
    """Return the excess risk of p coefficients from n rows, each worth a share of a true one."""
    return 1 / (1 + column.rows * share / (column.release.features.width + 1))


def information_share(posterior: FloatArray, channel: FloatArray) -> float:
    """Return how many true labels one noisy label is worth for learning P(y | x), from 0 to 1.

    The Fisher information of a noisy label about the k − 1 free probabilities, in units of a true
    label's, averaged over directions and rows: tr(J⁻¹ J̃)/(k − 1) with J the information of the true
    label and J̃ that of the noisy one. ``posterior`` of shape (r, k), ``channel`` of shape (k, m).
    """
    noisy = np.maximum(posterior @ channel, _LEAST)
    # tr(J⁻¹ J̃) = Σ_z Var_η(T[·, z]) / η̃_z: the variance over the label, given x, of z's chance.
    second = posterior @ channel**2
    shares = ((second - noisy**2) / noisy).sum(axis=1) / (posterior.shape[1] - 1)
    return float(np.clip(shares.mean(), 0.0, 1.0))


def share_error(prior: FloatArray, channel: FloatArray, rows: int) -> float:
    """Return the root mean square error of the labels' shares, estimated by inverting the channel.

    ``prior``: the true shares, float64 of shape (k,); ``channel`` of shape (k, m). ∞ where it
    cannot be inverted.
    """
    if np.linalg.matrix_rank(channel, tol=1e-9) < len(channel):
        return math.inf
    # Weighted by the outputs' frequencies: less noise than the plain pseudo-inverse.
    weight = 1 / np.maximum(prior @ channel, _LEAST)
    inverse = np.linalg.solve((channel * weight) @ channel.T, channel * weight).T
    spread = prior @ (channel @ inverse**2 - (channel @ inverse) ** 2)
    return float(math.sqrt(max(spread.mean(), 0.0) / rows))


def _numbers_cost(column: Column, mechanism: Mechanism) -> float:
    """Return the excess risk by noise, and by the bias of noisy numbers unless that is undone."""
    mechanism = mechanism.after_rounding
    errors, numeric = label_errors(mechanism), column.release.numeric
    if errors is None or numeric is None or numeric.truth is None:
        return math.inf
    counts = np.bincount(nearest(errors.labels, numeric.truth), minlength=len(errors.labels))
    weights, spread = counts / counts.sum(), max(float(np.var(numeric.truth)), _LEAST)

    def excess(variance: FloatArray) -> float:
        return _excess(column, spread / (spread + float(weights @ variance)))

    kept = float(weights @ errors.bias**2) / spread + excess(errors.variance)
    if mechanism.channel is None or errors.unbiased:
        return kept
    try:
        values = unbiased_values(mechanism.channel)
    except LdpAuditError:
        return kept
    return min(kept, excess(mechanism.channel.matrix @ values**2 - errors.labels**2))


def _together(
    columns: Sequence[Column], ranked: Sequence[list[Point]], grid: Sequence[float], most: float
) -> tuple[Parts, ...]:
    """Return the best mechanism of every column with ever more ε, shared out among them."""
    d = len(columns)
    if len(ranked) < d:
        return ()
    costs = [
        [(point.value, c) for point in points if math.isfinite(c := cost(column, point))]
        for column, points in zip(columns, ranked, strict=True)
    ]
    totals = sorted({min(d * epsilon, most) for epsilon in grid})
    shares = [found for total in totals if (found := shared_out(costs, total)) is not None]
    return tuple(
        tuple(Point(of[0].mechanism, "epsilon", e, 1) for of, e in zip(ranked, each, strict=True))
        for each in dict.fromkeys(map(tuple, shares))
    )


def shared_out(
    columns: Sequence[Sequence[tuple[float, float]]], total: float
) -> list[float] | None:
    """Return the ε of each column: each nat goes where it lowers the cost most.

    ``columns``: of each its ε in nats, ascending, and the cost there. Costs are in units of what a
    column can gain at all, so that they can be added. None where even the smallest ε are too much.
    """
    places = [0] * len(columns)
    if any(not one for one in columns) or sum(one[0][0] for one in columns) > total + 1e-9:
        return None
    while True:
        left = total - sum(one[place][0] for one, place in zip(columns, places, strict=True))
        steps = [
            (gain, index, place)
            for index, one in enumerate(columns)
            for gain, place in _steps(one, places[index], left)
        ]
        if not steps:
            return [one[place][0] for one, place in zip(columns, places, strict=True)]
        _, index, place = max(steps)
        places[index] = place


def _steps(
    column: Sequence[tuple[float, float]], here: int, left: float
) -> list[tuple[float, int]]:
    """Return every further ε that can be paid, with its gain for each nat."""
    costs = [cost for _, cost in column]
    scale = max(max(costs) - min(costs), 1e-12)
    paid = [epsilon - column[here][0] for epsilon, _ in column]
    return [
        ((costs[here] - costs[place]) / scale / paid[place], place)
        for place in range(here + 1, len(column))
        if paid[place] <= left + 1e-9
    ]


def _start(columns: Sequence[Column], line: Sequence[Parts], policy: Policy, most: float) -> int:
    """Return the place of the least noise that the closed form expects to be within the limits."""
    checks = policy.checks
    limited = checks.label_inference_advantage or checks.label_inference_accuracy
    wanted = most if math.isfinite(most) or limited else _USUAL * len(columns)
    place = max((i for i, parts in enumerate(line) if spent(parts) <= wanted + 1e-9), default=0)
    while place and not all(map(within, columns, line[place], [policy] * len(columns))):
        place -= 1
    return place


def within(column: Column, point: Point, policy: Policy) -> bool:
    """Return whether guesses are expected to be within the policy's limits, by the closed form."""
    guessed, classes = column.guessed(point), len(column.release.classes)
    if guessed is None or column.release.numeric is not None:
        return guessed is not None
    gain, right = policy.checks.label_inference_advantage, policy.checks.label_inference_accuracy
    if gain is not None:
        most = advantage_ceiling(point.value, classes) if gain.max == CLAIM else float(gain.max)
        if guessed - float(column.tested.alone.mean()) > most:
            return False
    return right is None or guessed <= right.max
