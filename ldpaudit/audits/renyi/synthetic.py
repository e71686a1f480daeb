"""Synthetic features against true ones, label by label: Δ(α)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.renyi.curves import (
    AUDIT_ID,
    bound_functions,
    certified_curve,
    estimated_curve,
    support_estimates,
)
from ldpaudit.audits.renyi.pairs import largest_points
from ldpaudit.audits.renyi.sides import UNSEEN, Sides, true_and_synthetic
from ldpaudit.device import torch_device
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.renyi.critics import Scores
from ldpaudit.estimators.renyi.discriminators.discriminator import fit_strongest, kinds_for
from ldpaudit.estimators.renyi.divergence import ORDERS, RenyiBound, bounds_on, split_scores
from ldpaudit.estimators.renyi.points import RenyiPoint, calibration_error, renyi_points
from ldpaudit.release import BoolArray, FeatureTable, Float32Array, IndexArray
from ldpaudit.result import Curve, Finding, Note

SYNTHETIC = "renyi.synthetic"
_TITLE = "True against synthetic features"
FEWEST = 200
"""A label is compared if it has this many true and this many synthetic rows."""
MOST_LABELS = 8
_MOST_HELD_OUT = 40_000
_FITTED_CELLS = 1_500_000
_FEWEST_FITTED = 1_000
_COPIED = (
    "More synthetic rows are exactly equal to true rows than true rows are to one another: their "
    "generator has seen these rows, or it favours rows that many people share. In the first case "
    "how far it is from people whom it has not seen cannot be measured here, so nothing is "
    "estimated or implied for double randomized response."
)


@dataclass(frozen=True)
class SyntheticOutcome:
    """The finding, and the estimated Δ(α) for what follows from it."""

    finding: Finding
    estimate: Curve | None = None
    labelled: bool = False


@dataclass(frozen=True)
class _LabelResult:
    bounds: tuple[RenyiBound, ...]
    points: tuple[RenyiPoint, ...]
    calibration: float
    rows: int


def synthetic_outcome(context: AuditContext) -> SyntheticOutcome | None:
    """Return how far synthetic features are from true ones, None where either is unknown."""
    sides = true_and_synthetic(context)
    if sides is None:
        return None
    common = [y for y in sides.true if len(sides.true[y]) >= FEWEST]
    common = [y for y in common if len(sides.synthetic.get(y, ())) >= FEWEST]
    common = sorted(common, key=lambda y: -len(sides.true[y]))[:MOST_LABELS]
    left_out = len(sides.true) - len(common)
    if not common:
        text = (
            f"Synthetic features were not compared with true ones: no label has {FEWEST} rows of "
            "both."
        )
        return SyntheticOutcome(Finding(notes=(Note.info(AUDIT_ID, text),)))
    try:
        results = [_of_label(context, sides, y, len(common)) for y in common]
    except InsufficientDataError as error:
        text = f"Synthetic features were not compared with true ones. {error}"
        return SyntheticOutcome(Finding(notes=(Note.info(AUDIT_ID, text),)))
    return _outcome(context, sides, results, left_out)


def _of_label(context: AuditContext, sides: Sides, label: int, labels: int) -> _LabelResult:
    context.progress.step("comparing synthetic with true features")
    rng = context.rng(AUDIT_ID, "synthetic", str(label))
    p, categorical = as_matrix(sides.original.take(_sampled(sides.true[label], rng)))
    q, _ = as_matrix(sides.made.take(_sampled(sides.synthetic[label], rng)))
    half_p, half_q = len(p) // 2, len(q) // 2
    share = min(1.0, 2 / labels)
    most = max(_FEWEST_FITTED, int(share * _FITTED_CELLS / p.shape[1]))
    model = fit_strongest(
        p[: min(half_p, most)],
        q[: min(half_q, most)],
        kinds_for(p.shape[1], categorical, min(half_p, half_q)),
        rng=rng,
        categorical=categorical,
        threads=context.plan.threads,
        device=torch_device(context.plan.device),
    )
    scores = Scores(model.log_ratio(p[half_p:]), model.log_ratio(q[half_q:]))
    tuning, test = split_scores(scores, rng=rng)
    points = renyi_points(test, ORDERS)
    rows = len(test.p) + len(test.q)
    return _LabelResult(bounds_on(tuning, test, ORDERS), points, calibration_error(test), rows)


def _sampled(rows: IndexArray, rng: np.random.Generator) -> IndexArray:
    return np.asarray(rng.permutation(rows)[: 2 * _MOST_HELD_OUT])


def as_matrix(features: FeatureTable) -> tuple[Float32Array, BoolArray]:
    """Return both blocks side by side, NaN where missing, and which columns hold codes."""
    codes = features.categorical.astype(np.float32)
    codes[features.categorical < 0] = np.nan
    matrix = np.concatenate([features.numeric, codes], axis=1)
    return matrix, np.arange(matrix.shape[1]) >= features.numeric.shape[1]


def _outcome(
    context: AuditContext, sides: Sides, results: list[_LabelResult], left_out: int
) -> SyntheticOutcome:
    rows, confidence = sum(one.rows for one in results), context.plan.confidence
    chosen = [
        max((one.bounds[i] for one in results), key=lambda b: b.critic.foreseen)
        for i in range(len(ORDERS))
    ]
    made = "synthetic rows of the same label" if sides.labelled else "all synthetic rows"
    words = (
        f"true features of a label against {made}, the label chosen among {len(results)} on rows "
        "that the bound does not use; a lower bound, so it cannot show that synthetic rows are "
        "realistic"
    )
    points = largest_points([one.points for one in results])
    calibration = max(one.calibration for one in results)
    labels = f"largest of {len(results)} labels, at orders that the rows of every one support"
    estimate = estimated_curve(
        f"{SYNTHETIC}.estimate",
        f"{_TITLE}, by a model",
        points,
        labels,
        rows,
        _assumed(sides, left_out),
    )
    if sides.seen:
        estimate = None
    curve = certified_curve(SYNTHETIC, _TITLE, chosen, confidence, words, rows)
    given = (*curve.assumptions, *_assumed(sides))
    kind = "estimated" if sides.doubt else "certified"
    curve = curve.model_copy(update={"kind": kind, "assumptions": given})
    curves = (curve,)
    names = "discriminator of synthetic rows", "synthetic features"
    notes = [Note.info(AUDIT_ID, text) for text in _notes(sides, left_out)]
    if sides.seen:
        notes.append(Note.warning(AUDIT_ID, _COPIED))
    finding = Finding(
        estimates=tuple(support_estimates(SYNTHETIC, names, points, calibration, rows)),
        curves=curves if estimate is None else (*curves, estimate),
        notes=tuple(notes),
        bounds={} if sides.doubt else bound_functions(SYNTHETIC, chosen),
    )
    return SyntheticOutcome(finding, estimate, sides.labelled)


def _assumed(sides: Sides, left_out: int = 0) -> tuple[str, ...]:
    """Return what is assumed of the synthetic rows, and of labels that were not compared."""
    doubts = () if sides.doubt is None else (sides.doubt,)
    others = f"{left_out} labels that were not compared are no farther from their synthetic rows"
    return (UNSEEN, *doubts, *((others,) if left_out else ()))


def _notes(sides: Sides, left_out: int) -> Iterator[str]:
    yield (
        "The divergence between true and synthetic features is that of the generator. Rows of a "
        "synthetic table that are released more than once can be told from people by an attacker "
        "who holds the table; that is not measured here."
    )
    if left_out:
        yield (
            f"{left_out} labels were left out: those with fewer than {FEWEST} true or synthetic "
            f"rows, and all but the {MOST_LABELS} most frequent."
        )
    if not sides.labelled:
        yield (
            "The label that a synthetic row was made for is not released, so each label's true "
            "features face all synthetic rows."
        )
