"""Synthetic features against true ones, label by label: Δ(α)."""

from dataclasses import dataclass

import numpy as np

from ldpaudit.attacks.feature_cells import hash_rows
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.renyi_curves import (
    AUDIT_ID,
    bound_functions,
    certified_curve,
    estimated_curve,
    support_estimates,
)
from ldpaudit.estimators.discriminators import fit_strongest, kinds_for
from ldpaudit.estimators.renyi import ORDERS, RenyiBound, bounds_on, split_scores
from ldpaudit.estimators.renyi_critics import Scores
from ldpaudit.estimators.renyi_points import RenyiPoint, calibration_error, renyi_points
from ldpaudit.release import BoolArray, FeatureTable, Float32Array, IndexArray
from ldpaudit.result import Curve, Finding, Note

SYNTHETIC = "renyi.synthetic"
FEWEST = 200
"""Rows of a label, true and synthetic, with which its divergence is looked at."""
MOST_LABELS = 8
_MOST_HELD_OUT = 40_000
_FITTED_CELLS = 1_500_000
_FEWEST_FITTED = 1_000
_DISTINCT = 0.99
_NEVER_EQUAL = (
    "no synthetic row equals by chance the row that it replaces: such rows count as kept, though "
    "true rows repeat"
)


@dataclass(frozen=True)
class Sides:
    """True and synthetic rows of every label.

    Attributes
    ----------
    true : mapping from label code to row numbers of ``original``
    synthetic : the same of ``made``
    original, made : FeatureTable
    labelled : bool
        Whether the synthetic rows' labels are known; else every label faces all of them.
    repeats : bool
        Whether true rows repeat and the synthetic ones are known only by differing from the row
        that they replace: those that equal it by chance are then missing.
    """

    true: dict[int, IndexArray]
    synthetic: dict[int, IndexArray]
    original: FeatureTable
    made: FeatureTable
    labelled: bool
    repeats: bool = False


@dataclass(frozen=True)
class SyntheticOutcome:
    """The finding, and the estimated Δ(α) for what follows from it."""

    finding: Finding
    estimate: Curve | None = None
    labelled: bool = False


@dataclass(frozen=True)
class _OfLabel:
    bounds: tuple[RenyiBound, ...]
    points: tuple[RenyiPoint, ...]
    calibration: float
    rows: int


def synthetic_outcome(context: AuditContext) -> SyntheticOutcome | None:
    """Return how far synthetic features are from true ones, None where either is unknown."""
    sides = _sides(context)
    if sides is None:
        return None
    common = [y for y in sides.true if len(sides.true[y]) >= FEWEST]
    common = [y for y in common if len(sides.synthetic.get(y, ())) >= FEWEST]
    left_out = len(sides.true) - len(common)
    common = sorted(common, key=lambda y: -len(sides.true[y]))[:MOST_LABELS]
    if not common:
        text = (
            f"Synthetic features were not compared with true ones: no label has {FEWEST} rows of "
            "both."
        )
        return SyntheticOutcome(Finding(notes=(Note(audit=AUDIT_ID, text=text),)))
    found = [_of_label(context, sides, y, len(common)) for y in common]
    return _outcome(context, sides, found, left_out)


def replaced_rows(original: FeatureTable, released: FeatureTable) -> BoolArray:
    """Return which rows have other features in the release than in the original, bool (n,)."""
    a, b = original.numeric, released.numeric
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    other = ~same.all(axis=1)
    return np.asarray(other | (original.categorical != released.categorical).any(axis=1))


def _sides(context: AuditContext) -> Sides | None:
    release, k = context.release, len(context.release.classes)
    truth = release.truth
    if truth is None or release.features.width == 0:
        return None
    given = release.synthetic
    untouched = context.claim.channel is not None
    original = release.original
    if original is None and given is not None and untouched:
        original = release.features
    if original is None:
        return None
    true = {y: np.flatnonzero(truth == y) for y in range(k) if (truth == y).any()}
    if given is not None:
        made = {y: np.flatnonzero(given.labels == y) for y in range(k)}
        return Sides(true, made, original, given.features, True)
    if context.claim.name not in ("double-rr", "unknown"):
        return None
    rows = np.flatnonzero(replaced_rows(original, release.features))
    repeats = _repeats(original)
    if not repeats:
        rows = _once(release.features, rows)
    return Sides(true, dict.fromkeys(true, rows), original, release.features, False, repeats)


def _repeats(original: FeatureTable) -> bool:
    hashes = hash_rows(original)
    return len(np.unique(hashes)) < _DISTINCT * len(hashes)


def _once(released: FeatureTable, rows: IndexArray) -> IndexArray:
    """Return each synthetic row once; for true rows that hardly ever repeat.

    Copies of one row of a synthetic table are one draw of its generator: on both sides of a split
    they would be recognised, which tells of the table, not of how the generator resembles people.
    """
    _, first = np.unique(hash_rows(released.take(rows)), return_index=True)
    return np.asarray(rows[np.sort(first)])


def _of_label(context: AuditContext, sides: Sides, label: int, labels: int) -> _OfLabel:
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
        device=device_for(context.plan.device),
    )
    scores = Scores(model.log_ratio(p[half_p:]), model.log_ratio(q[half_q:]))
    tuning, test = split_scores(scores, rng=rng)
    points = renyi_points(test, ORDERS)
    rows = len(test.p) + len(test.q)
    return _OfLabel(bounds_on(tuning, test, ORDERS), points, calibration_error(test), rows)


def _sampled(rows: IndexArray, rng: np.random.Generator) -> IndexArray:
    return np.asarray(rng.permutation(rows)[: 2 * _MOST_HELD_OUT])


def as_matrix(features: FeatureTable) -> tuple[Float32Array, BoolArray]:
    """Return both blocks side by side, NaN where missing, and which columns hold codes."""
    codes = features.categorical.astype(np.float32)
    codes[features.categorical < 0] = np.nan
    matrix = np.concatenate([features.numeric, codes], axis=1)
    return matrix, np.arange(matrix.shape[1]) >= features.numeric.shape[1]


def device_for(wanted: str) -> str:
    """Return where a network runs; torch is asked only where a GPU may be used."""
    if wanted == "cpu":
        return "cpu"
    try:
        import torch
    except ImportError:
        return "cpu"
    return "cuda" if wanted == "cuda" or torch.cuda.is_available() else "cpu"


def _outcome(
    context: AuditContext, sides: Sides, found: list[_OfLabel], left_out: int
) -> SyntheticOutcome:
    rows, confidence = sum(one.rows for one in found), context.plan.confidence
    chosen = [
        max((one.bounds[i] for one in found), key=lambda b: b.critic.foreseen)
        for i in range(len(ORDERS))
    ]
    made = "synthetic rows of the same label" if sides.labelled else "all synthetic rows"
    words = (
        f"true features of a label against {made}, the label chosen among {len(found)} on rows "
        "that the bound does not use; a lower bound, so it cannot show that synthetic rows are "
        "realistic"
    )
    points = tuple(
        max((one.points[i] for one in found), key=lambda point: (not point.supported, point.value))
        for i in range(len(ORDERS))
    )
    calibration = max(one.calibration for one in found)
    estimate = estimated_curve(f"{SYNTHETIC}.estimate", points, f"largest of {len(found)}", rows)
    curve = certified_curve(SYNTHETIC, chosen, confidence, words, rows)
    if sides.repeats:
        given = (*curve.assumptions, _NEVER_EQUAL)
        curve = curve.model_copy(update={"kind": "estimated", "assumptions": given})
    curves = (curve,)
    finding = Finding(
        estimates=tuple(support_estimates(SYNTHETIC, points, calibration, rows)),
        curves=curves if estimate is None else (*curves, estimate),
        notes=tuple(Note(audit=AUDIT_ID, text=text) for text in _notes(sides, left_out)),
        bounds={} if sides.repeats else bound_functions(SYNTHETIC, chosen),
    )
    return SyntheticOutcome(finding, estimate, sides.labelled)


def _notes(sides: Sides, left_out: int) -> list[str]:
    found = [
        "The divergence between true and synthetic features is that of the generator. Rows of a "
        "synthetic table that are released more than once can be told from people by an attacker "
        "who holds the table; that is not measured here."
    ]
    if left_out:
        found.append(
            f"{left_out} labels with fewer than {FEWEST} true or synthetic rows were left out."
        )
    if not sides.labelled:
        found.append(
            "The label that a synthetic row stands for is not released, so each label's true "
            "features face all synthetic rows."
        )
    return found
