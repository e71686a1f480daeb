"""How realistic synthetic rows are, and how many of them are copies."""

import numpy as np

from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.renyi.synthetic import as_matrix
from ldpaudit.device import torch_device
from ldpaudit.estimators.intervals.ranking import auc, auc_lower, auc_upper
from ldpaudit.estimators.neighbors.closest_records import closest, exact_copies, row_keys
from ldpaudit.estimators.neighbors.metric import fit_metric
from ldpaudit.estimators.renyi.discriminators.discriminator import fit_discriminator, kinds_for
from ldpaudit.release import FeatureTable, Float32Array, IndexArray
from ldpaudit.result import Estimate

_AUDIT_ID = "synthetic"
_FEWEST_DISTINCT = 80
_MOST_ROWS = 40_000
_MOST_COMPARED = 10_000


def realism_estimates(
    context: AuditContext, original: FeatureTable, rows: IndexArray
) -> tuple[Estimate, ...]:
    """Return the discriminator's AUC, copies, and how near synthetic rows lie to originals.

    ``original`` holds the true features of all rows; ``rows``, int64 of shape (m,), are those whose
    features are synthetic.
    """
    made, _ = as_matrix(context.release.features.take(rows))
    originals, _ = as_matrix(original)
    return (
        copies_estimate(made, originals),
        repeats_estimate(originals),
        _nearness(context, original, rows),
        *_discriminator(context, original, rows),
    )


def copies_estimate(made: Float32Array, originals: Float32Array) -> Estimate:
    """Return the share of synthetic rows that equal an original row in every column."""
    copies = int(exact_copies(made, originals).sum())
    return Estimate.estimated(
        "synthetic.copies_share",
        "Synthetic rows that equal an original row",
        copies / len(made),
        unit="proportion",
        n=len(made),
        count=copies,
        method="synthetic rows that equal some original row in every column, counted",
        assumptions=("copies are a sign of memorisation only where true rows hardly ever repeat",),
    )


def repeats_estimate(originals: Float32Array) -> Estimate:
    """Return the share of original rows that equal another original row: what copies mean."""
    _, inverse, counts = np.unique(row_keys(originals), return_inverse=True, return_counts=True)
    repeated = int((counts[inverse] > 1).sum())
    return Estimate.estimated(
        "synthetic.repeats_share",
        "Original rows that equal another original row",
        repeated / len(originals),
        unit="proportion",
        n=len(originals),
        count=repeated,
        method="original rows that equal another original row in every column, counted",
        assumptions=("the share of copies to expect where synthetic rows copy nobody",),
    )


def _nearness(context: AuditContext, original: FeatureTable, rows: IndexArray) -> Estimate:
    """Return the share of synthetic rows nearer to originals than originals are to one another.

    Both look for their closest record among the same other half of the originals.
    """
    rng = context.rng(_AUDIT_ID, "nearness")
    order = rng.permutation(len(original))[: 4 * _MOST_COMPARED]
    records, asking = (original.take(part) for part in np.split(order, [len(order) // 2]))
    metric = fit_metric(original, "l2", rng=rng)
    made = context.release.features.take(rng.permutation(rows)[:_MOST_COMPARED])
    points = metric.transform(records)
    far_made = closest(metric.transform(made), points, 1)[0][:, 0]
    far_own = closest(metric.transform(asking), points, 1)[0][:, 0]
    return Estimate.estimated(
        "synthetic.nearer_share",
        "Synthetic rows nearer to originals than originals are",
        auc(-far_made, -far_own),
        unit="proportion",
        n=len(far_made),
        method="pairs of a synthetic and an original row: in how many is the synthetic one "
        "nearer to its closest original of the other half; ties count half",
        assumptions=(
            "far above ½ is a sign of memorisation only where synthetic rows are no more "
            "concentrated than true ones",
        ),
    )


def _discriminator(
    context: AuditContext, original: FeatureTable, rows: IndexArray
) -> tuple[Estimate, ...]:
    context.progress.step("telling synthetic from true rows")
    rng = context.rng(_AUDIT_ID, "discriminator")
    released, _ = as_matrix(context.release.features.take(rows))
    # Copies of one synthetic row would be recognised from one half in the other.
    _, first = np.unique(row_keys(released), return_index=True)
    q = released[rng.permutation(first)[:_MOST_ROWS]]
    p, categorical = as_matrix(original.take(_balanced(context, len(original), rng)[:_MOST_ROWS]))
    size = min(len(p), len(q))
    if size < _FEWEST_DISTINCT * 2:
        return ()
    half = size // 2
    p, q = p[: 2 * half], q[: 2 * half]
    model = fit_discriminator(
        p[:half],
        q[:half],
        kinds_for(p.shape[1], categorical, half)[0],
        rng=rng,
        categorical=categorical,
        threads=context.plan.threads,
        device=torch_device(context.plan.device),
    )
    value = auc(model.log_ratio(p[half:]), model.log_ratio(q[half:]))
    alpha = (1 - context.plan.confidence) / 2
    return (
        Estimate.interval(
            "synthetic.discriminator_auc",
            "AUC of telling synthetic from true rows",
            value,
            (auc_lower(value, half, alpha), auc_upper(value, half, alpha)),
            context.plan.confidence,
            kind="estimated",
            unit="1",
            n=2 * half,
            method="AUC of a discriminator of true against distinct synthetic rows, on rows that "
            "it was not fitted on; ½: it cannot tell them apart",
            assumptions=(
                "a better discriminator would tell them apart better",
                "the distinct synthetic rows are independent draws of their generator",
            ),
        ),
    )


def _balanced(context: AuditContext, n: int, rng: np.random.Generator) -> IndexArray:
    """Return rows with equally many of each true label: synthetic labels are drawn uniformly."""
    order = rng.permutation(n)
    truth = context.release.truth
    if truth is None:
        return order
    labels = [order[truth[order] == y] for y in np.unique(truth)]
    each = min(map(len, labels))
    return np.asarray(rng.permutation(np.concatenate([rows[:each] for rows in labels])))
