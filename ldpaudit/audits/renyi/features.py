"""Δ(α), the divergence of synthetic features from true ones, label by label.

What follows from it for double randomized response is a curve of its own.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ldpaudit.audits.before import replaced_rows
from ldpaudit.audits.interface import AuditContext, Part
from ldpaudit.audits.renyi.curves import (
    AUDIT_ID,
    MOST_LABELS,
    X_LABEL,
    Measured,
    bounds_of_orders,
    certified_curve,
    curve_consequences,
    estimated_curve,
    largest_points,
    most_promising,
    support_estimates,
)
from ldpaudit.device import device_for
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.discriminators import fit_strongest, kinds_for
from ldpaudit.estimators.renyi import (
    AUDITED_ORDERS,
    Scores,
    bounds_on,
    calibration_error,
    renyi_points,
    split_scores,
)
from ldpaudit.mechanisms.capabilities import SyntheticFeatures
from ldpaudit.models.counts import hash_rows
from ldpaudit.release import BoolArray, FeatureTable, Float32Array, IndexArray
from ldpaudit.result import Curve, Note

_DISTINCT = 0.99
_NEVER_EQUAL = (
    "no synthetic row equals by chance the row that it replaces: such rows count as kept, though "
    "true rows repeat"
)
_COPIES = (
    "equal synthetic rows are copies of one row and count once, though a few true rows repeat too"
)
_UNTRUE = "the synthetic rows are not copies of true ones, though many equal one"
_MOST_COPIES = 0.01
_STANDARD_ERRORS = 4
_UNSEEN = (
    "the synthetic rows do not depend on the true rows that they are compared with: their "
    "generator never saw those rows"
)


@dataclass(frozen=True)
class _Sides:
    """True and synthetic rows of every label."""

    true: dict[int, IndexArray]
    synthetic: dict[int, IndexArray]
    original: FeatureTable
    made: FeatureTable
    labelled: bool
    """Whether the synthetic rows' labels are known; else every label faces all of them."""
    doubt: str | None = None
    """What has to be assumed of the synthetic rows where they are known only by differing from the
    row that they replace and true rows repeat. Nothing about them is certified then."""
    seen: bool = False
    """Whether clearly more synthetic rows equal true ones than true rows equal one another: their
    generator may have seen them (or favours rows that many people share), and then no comparison
    says how far it is from people whom it has not seen."""


def _true_and_synthetic(context: AuditContext) -> _Sides | None:
    release, k = context.release, len(context.release.classes)
    truth = release.truth
    if truth is None or release.features.width == 0:
        return None
    table = release.synthetic
    untouched = context.claim.traits.features == "unchanged"
    original = release.original
    if original is None and table is not None and untouched:
        original = release.features
    if original is None:
        return None
    true = {y: np.flatnonzero(truth == y) for y in range(k) if (truth == y).any()}
    if table is not None:
        made = {y: np.flatnonzero(table.labels == y) for y in range(k)}
        seen = _are_copies(table.features, original)
        return _Sides(true, made, original, table.features, True, _UNTRUE if seen else None, seen)
    if not context.claim.traits.features_replaced:
        return None
    rows = np.flatnonzero(replaced_rows(original, release.features))
    hashes = hash_rows(original)
    distinct = len(np.unique(hashes)) / len(hashes)
    if distinct >= _DISTINCT:
        rows = _once(release.features, rows, original, context.rng(AUDIT_ID, "copies"))
    doubt = None if distinct == 1 else _COPIES if distinct >= _DISTINCT else _NEVER_EQUAL
    seen = _are_copies(release.features.take(rows), original)
    doubt = _UNTRUE if seen else doubt
    made = dict.fromkeys(true, rows)
    return _Sides(true, made, original, release.features, False, doubt, seen)


def _are_copies(made: FeatureTable, original: FeatureTable) -> bool:
    """Return whether synthetic rows equal true rows clearly more often than true rows others do."""
    _, inverse, counts = np.unique(hash_rows(original), return_inverse=True, return_counts=True)
    repeated = float((counts[inverse] > 1).mean())
    copied = float(np.isin(hash_rows(made), hash_rows(original)).mean()) if len(made) else 0.0
    spread = math.sqrt(repeated * (1 - repeated) / max(min(len(made), len(original)), 1))
    return copied > repeated + _MOST_COPIES + _STANDARD_ERRORS * spread


def _once(
    released: FeatureTable, rows: IndexArray, original: FeatureTable, rng: np.random.Generator
) -> IndexArray:
    """Return each synthetic row once, but values that people share as often as they would be."""
    # Copies of one row of a synthetic table are one draw of its generator: on both sides of a split
    # they would be recognised, which shows the table, not how the generator resembles people. A
    # value that several people have would lose its weight among the synthetic rows alone; its rows
    # are thinned by the average number of copies instead.
    made = hash_rows(released.take(rows))
    values, counts = np.unique(hash_rows(original), return_counts=True)
    shared = np.isin(made, values[counts > 1])
    first = np.zeros(len(rows), dtype=bool)
    first[np.unique(made, return_index=True)[1]] = True
    share = (first & ~shared).sum() / max(int((~shared).sum()), 1)
    chosen = np.where(shared, rng.random(len(rows)) < share, first)
    return np.asarray(rows[chosen])


_DOUBLE_RR = "renyi.double_rr_epsilon"
_FLOOR = "renyi.double_rr_floor"
_REFERENCE = "Busa-Fekete et al. (2023), Theorem 7.1"
_PLUGGED_IN = "the estimated divergence of synthetic from true features is not too small"


def double_rr_curves(context: AuditContext, compared: Iterable[Part]) -> Iterator[Part]:
    """Yield the curves of the claimed double randomized response; nothing for other claims.

    ``compared``: what was found of synthetic features. Without the estimated divergence Δ̂(α)
    only the floor is known. Where synthetic rows have labels, Δ̂ is between rows of one label
    (Theorem 7.1); else it is from a label's true rows to all synthetic ones.
    """
    claim = context.claim.offers(SyntheticFeatures)
    if claim is None or claim.noise == 0:
        return
    curves = {part.id: part for part in compared if isinstance(part, Curve)}
    divergence = curves.get(f"{_SYNTHETIC}.estimate")
    if divergence is not None:
        curve = _curve(claim, divergence, context.release.synthetic is not None)
        words = "of double randomized response, estimated", "double RR, estimated"
        yield curve
        yield from curve_consequences(context, curve, "renyi.double_rr", "the curve with Δ̂", words)
    yield Curve(
        id=_FLOOR,
        title="Floor: the label alone, dummy features",
        kind="exact",
        axis="divergence",
        x=AUDITED_ORDERS,
        value=tuple(claim.conditional_rdp_floor(alpha) for alpha in AUDITED_ORDERS),
        x_label=X_LABEL,
        unit="nats",
        method="the label alone, with dummy features, reveals at least this at the declared "
        "λ: no less is possible",
        reference="Busa-Fekete et al. (2023), Theorem 7.2",
    )


def mixture_epsilon(alpha: float, divergence: float, noise: float, label_rdp: float) -> float:
    """Return ε of (α, ε, P)-label Rényi DP from the distance to the mixture of synthetic rows.

    With R the mixture of all labels' synthetic rows and Δ ≥ D_α(P_{X|y} ‖ R) for every y,

        ε = RDP of the label + log(1/λ) + α/(α − 1) · log((1 − λ) e^{(α−1)Δ/α} + λ).

    The released features of y have the law (1 − λ)P_y + λR, at least λR whatever the label, which
    gives log(1/λ) + D_α((1 − λ)P_y + λR ‖ R). With f = dP_y/dR the last is α/(α − 1) times the
    logarithm of the norm of (1 − λ)f + λ in L^α(R), by Minkowski's inequality at most
    (1 − λ)‖f‖ + λ, and ‖f‖ ≤ e^{(α−1)Δ/α}.

    ``alpha``: the order, above 1. ``divergence``: Δ ≥ 0 in nats. ``noise``: λ in (0, 1].
    ``label_rdp``: the Rényi label-DP of the label's own randomized response at that order, in nats.
    """
    keep = 1 - noise
    power = (alpha - 1) / alpha
    # Divided by e^{(α−1)Δ/α}, so that large Δ do not overflow.
    inner = math.log(keep + noise * math.exp(-power * divergence))
    return label_rdp + math.log(1 / noise) + divergence + inner / power


def _curve(claim: SyntheticFeatures, divergence: Curve, labelled: bool) -> Curve:
    points = list(zip(divergence.x, divergence.value, strict=True))
    if labelled:
        # Busa-Fekete et al. (2023), Theorem 7.1.
        values = [claim.conditional_epsilon(delta) for _, delta in points]
        words, reference = "2 log(1 + k(1 − λ)/λ) + Δ̂(α)", _REFERENCE
    else:
        values = [mixture_epsilon(a, delta, claim.noise, claim.rdp(a)) for a, delta in points]
        words = (
            "the label's Rényi DP + log(1/λ) + α/(α − 1) · log((1 − λ)e^{(α−1)Δ̂/α} + λ), Δ̂ from "
            "a label's true features to all synthetic rows"
        )
        reference = f"Minkowski's inequality; after {_REFERENCE}"
    return Curve(
        id=_DOUBLE_RR,
        title="Double randomized response, with the estimated divergence",
        kind="estimated",
        axis="divergence",
        x=divergence.x,
        value=tuple(values),
        x_label=X_LABEL,
        unit="nats",
        n=divergence.n,
        method=f"{words}, with Δ̂ estimated: an estimate, no guarantee",
        assumptions=("the claim holds", _PLUGGED_IN, *divergence.assumptions),
        reference=reference,
    )


_SYNTHETIC = "renyi.synthetic"
_TITLE = "True against synthetic features"
FEWEST = 200  # A label is compared if it has this many true and this many synthetic rows.
_MOST_HELD_OUT = 40_000
_FITTED_CELLS = 1_500_000
_FEWEST_FITTED = 1_000
_COPIED = (
    "More synthetic rows are exactly equal to true rows than true rows are to one another: their "
    "generator has seen these rows, or it favours rows that many people share. In the first case "
    "how far it is from people whom it has not seen cannot be measured here, so nothing is "
    "estimated or implied for double randomized response."
)


def synthetic_parts(context: AuditContext) -> list[Part] | None:
    """Return how far synthetic features are from true ones, None where either is unknown."""
    sides = _true_and_synthetic(context)
    if sides is None:
        return None
    common = [y for y in sides.true if len(sides.true[y]) >= FEWEST]
    common = [y for y in common if len(sides.synthetic.get(y, ())) >= FEWEST]
    common = sorted(common, key=lambda y: -len(sides.true[y]))[:MOST_LABELS]
    why = f": no label has {FEWEST} rows of both."
    try:
        results = [_of_label(context, sides, y, len(common)) for y in common]
    except InsufficientDataError as error:
        results, why = [], f". {error}"
    if results:
        return [*_compared(context, sides, results, len(sides.true) - len(common))]
    return [Note.info(AUDIT_ID, f"Synthetic features were not compared with true ones{why}")]


def _of_label(context: AuditContext, sides: _Sides, label: int, labels: int) -> Measured:
    context.progress.step("comparing synthetic with true features")
    rng = context.rng(AUDIT_ID, "synthetic", str(label))
    p, categorical = as_matrix(sides.original.take(_sampled(sides.true[label], rng)))
    q, _ = as_matrix(sides.made.take(_sampled(sides.synthetic[label], rng)))
    half_p, half_q = len(p) // 2, len(q) // 2
    share = min(1.0, 2 / labels)
    most = max(_FEWEST_FITTED, int(share * _FITTED_CELLS / p.shape[1]))
    kinds = kinds_for(p.shape[1], categorical, min(half_p, half_q))
    model = fit_strongest(
        p[: min(half_p, most)],
        q[: min(half_q, most)],
        kinds,
        rng=rng,
        categorical=categorical,
        threads=context.plan.threads,
        device=device_for(kinds, context.plan.device),
    )
    scores = Scores(model.log_ratio(p[half_p:]), model.log_ratio(q[half_q:]))
    tuning, test = split_scores(scores, rng=rng)
    points, bounds = renyi_points(test, AUDITED_ORDERS), bounds_on(tuning, test, AUDITED_ORDERS)
    return Measured(bounds, points, calibration_error(test), len(test.p) + len(test.q))


def _sampled(rows: IndexArray, rng: np.random.Generator) -> IndexArray:
    return np.asarray(rng.permutation(rows)[: 2 * _MOST_HELD_OUT])


def as_matrix(features: FeatureTable) -> tuple[Float32Array, BoolArray]:
    """Return both blocks side by side, NaN where missing, and which columns hold codes."""
    codes = features.categorical.astype(np.float32)
    codes[features.categorical < 0] = np.nan
    matrix = np.concatenate([features.numeric, codes], axis=1)
    return matrix, np.arange(matrix.shape[1]) >= features.numeric.shape[1]


def _compared(
    context: AuditContext, sides: _Sides, results: list[Measured], left_out: int
) -> Iterator[Part]:
    """Yield the divergence of the farthest label: its bound, and its estimate."""
    chosen = most_promising([one.bounds for one in results])
    bounds = tuple(results[c].bounds[i] for i, c in enumerate(chosen))
    points = largest_points([one.points for one in results])
    calibration = max(one.calibration or 0.0 for one in results)
    measured = Measured(bounds, points, calibration, sum(one.rows for one in results))
    doubts = (_UNSEEN,) if sides.doubt is None else (_UNSEEN, sides.doubt)
    others = f"{left_out} labels that were not compared are no farther from their synthetic rows"
    made = "synthetic rows of the same label" if sides.labelled else "all synthetic rows"
    words = (
        f"true features of a label against {made}, the label chosen among {len(results)} on rows "
        "that the bound does not use; a lower bound, so it cannot show that synthetic rows are "
        "realistic"
    )
    curve = certified_curve(_SYNTHETIC, _TITLE, measured, context.plan.confidence, words)
    kind = "estimated" if sides.doubt else "certified"
    yield curve.model_copy(update={"kind": kind, "assumptions": (*curve.assumptions, *doubts)})
    labels = f"largest of {len(results)} labels, at orders that the rows of every one support"
    given = (*doubts, others) if left_out else doubts
    estimate = estimated_curve(_SYNTHETIC, _TITLE, measured, labels, given)
    if estimate is not None and not sides.seen:
        yield estimate
    names = "discriminator of synthetic rows", "synthetic features"
    yield from support_estimates(_SYNTHETIC, names, measured)
    if not sides.doubt:
        yield from bounds_of_orders(_SYNTHETIC, measured.bounds)
    yield Note.info(
        AUDIT_ID,
        "The divergence between true and synthetic features is that of the generator. Rows of "
        "a synthetic table that are released more than once can be told from people by an "
        "attacker who holds the table; that is not measured here.",
    )
    if left_out:
        yield Note.info(
            AUDIT_ID,
            f"{left_out} labels were left out: those with fewer than {FEWEST} true or synthetic "
            f"rows, and all but the {MOST_LABELS} most frequent.",
        )
    if not sides.labelled:
        yield Note.info(
            AUDIT_ID,
            "The label that a synthetic row was made for is not released, so each label's true "
            "features face all synthetic rows.",
        )
    if sides.seen:
        yield Note.warning(AUDIT_ID, _COPIED)
