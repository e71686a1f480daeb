"""Do synthetic rows depend on the row that they replace, or on the audited rows at all?"""

import numpy as np

from ldpaudit.attacks.models.cells import hash_rows
from ldpaudit.audits.interface import AuditContext
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.neighbors.metric import fit_metric
from ldpaudit.estimators.synthetic.memorisation import count_memorisation
from ldpaudit.estimators.synthetic.own_rows import count_own_rows
from ldpaudit.release import FeatureTable, IndexArray, joined
from ldpaudit.result import Estimate

_AUDIT_ID = "synthetic"
_REFERENCE = "Steinke et al. (2023), Theorem 5.2 with δ = 0"
_MOST_RECORDS = 20_000
_MOST_SYNTHETIC = 40_000


def own_row_estimate(context: AuditContext, original: FeatureTable, rows: IndexArray) -> Estimate:
    """Return a lower bound of the chance that synthetic rows reveal which rows they replace.

    ``rows``, int64 of shape (m,), are those with synthetic features.
    """
    context.progress.step("comparing synthetic rows with the rows that they replace")
    rng = context.rng(_AUDIT_ID, "own-row")
    metric = fit_metric(original, "l2", rng=rng)
    true, made = original.take(rows), context.release.features.take(rows)
    counts = count_own_rows(
        metric.transform(true), metric.transform(made), rng, (hash_rows(true), hash_rows(made))
    )
    return Estimate.lower_bound(
        "synthetic.own_row_share",
        "Synthetic rows nearer to the row that they replace",
        counts.share_lower(1 - context.plan.confidence),
        context.plan.confidence,
        unit="proportion",
        n=counts.decisive,
        count=counts.wins,
        method="random pairs of replaced rows: are the two synthetic rows nearer to their own true "
        "rows than swapped? ½ where they are drawn independently of the rows that they replace; "
        "Clopper–Pearson over the pairs that differ and could have been swapped",
        assumptions=("each synthetic row is drawn independently of the others",),
        reference="Busa-Fekete et al. (2023), Mechanism 2",
    )


def held_out_estimates(context: AuditContext, rows: IndexArray) -> tuple[Estimate, ...]:
    """Return whether the generator has seen audited rows; nothing without held-out rows."""
    release = context.release
    original, held_out = release.original, release.held_out
    if original is None or held_out is None:
        return ()
    context.progress.step("comparing synthetic rows with audited and held-out rows")
    rng = context.rng(_AUDIT_ID, "memorisation")
    audited = original.take(rng.permutation(len(original))[:_MOST_RECORDS])
    others = held_out.take(rng.permutation(len(held_out))[:_MOST_RECORDS])
    # The scale comes from both sets in the same measure, so that it cannot tell them apart.
    size = min(len(audited), len(others))
    scale = joined(audited.take(np.arange(size)), others.take(np.arange(size)))
    metric = fit_metric(scale, "l2", rng=rng)
    made = release.features.take(rng.permutation(rows)[:_MOST_SYNTHETIC])
    try:
        at = metric.transform
        counts = count_memorisation(at(audited), at(others), at(made), rng)
    except InsufficientDataError:
        return ()
    alpha = 1 - context.plan.confidence
    strongest = counts.strongest(alpha)
    given = (
        "audited and held-out rows are independent rows of one population",
        "a synthetic row does not depend on the row that it replaces, nor on that row's true label",
    )
    method = (
        "pairs of an audited and a held-out row: which is the closest record of more synthetic "
        "rows? A fair coin where the generator saw neither; Clopper–Pearson over decisive pairs, "
        "of all pairs or of the most one-sided tenth, hundredth …, corrected for that choice"
    )
    return (
        Estimate.lower_bound(
            "synthetic.memorisation_share",
            "Synthetic rows nearer to audited than to held-out rows",
            counts.share_lower(alpha),
            context.plan.confidence,
            unit="proportion",
            count=strongest.wins,
            n=strongest.decisive,
            method=method,
            assumptions=given,
            reference=_REFERENCE,
        ),
        Estimate.lower_bound(
            "synthetic.training_epsilon_lower",
            "ε of the generator’s training",
            counts.epsilon_lower(alpha),
            context.plan.confidence,
            unit="nats",
            method="the same pairs: ε of exchanging one training row of the generator",
            n=strongest.decisive,
            assumptions=given,
            reference=_REFERENCE,
        ),
    )
