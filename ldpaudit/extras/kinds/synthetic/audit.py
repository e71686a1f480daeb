"""Synthetic features: are they realistic, and do they reveal the rows that they replace?"""

# For double randomized response, or any release that replaces whole feature rows. The rows whose
# released features differ from the original ones are the synthetic ones.

from collections.abc import Iterator

import numpy as np
from scipy.stats import binom

from ldpaudit.audits.assumptions.standing import as_estimate
from ldpaudit.audits.before import replaced_rows
from ldpaudit.audits.interface import Part
from ldpaudit.audits.renyi.features import as_matrix
from ldpaudit.device import device_for
from ldpaudit.doors import (
    AuditContext,
    Estimate,
    FeatureTable,
    IndexArray,
    InsufficientDataError,
    Note,
    SyntheticFeatures,
    clopper_pearson,
)
from ldpaudit.estimators.discriminators import fit_discriminator, kinds_for
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE
from ldpaudit.estimators.intervals.ranking import auc, auc_lower, auc_upper
from ldpaudit.estimators.metric import fit_metric
from ldpaudit.extras.kinds.synthetic.attacks import attack_estimates
from ldpaudit.extras.kinds.synthetic.counts import (
    closest,
    count_memorisation,
    count_own_rows,
    exact_copies,
    row_keys,
)
from ldpaudit.models.counts import hash_rows
from ldpaudit.release import Float32Array, joined
from ldpaudit.result import stated

AUDIT_ID = "synthetic"
_REFERENCE = "Steinke et al. (2023), Theorem 5.2 with δ = 0"
_MOST_RECORDS = 20_000
_MOST_SYNTHETIC = 40_000
FEWEST = 100  # The fewest synthetic rows that are audited.
_FEWEST_DISTINCT, _MOST_ROWS, _MOST_COMPARED = 80, 40_000, 10_000
_COPIES = (
    (
        "copies",
        "Synthetic rows that equal an original row",
        "synthetic rows that equal some",
        "copies are a sign of memorisation only where true rows hardly ever repeat",
    ),
    (
        "repeats",
        "Original rows that equal another original row",
        "original rows that equal another",
        "the share of copies to expect where synthetic rows copy nobody",
    ),
)
_POPULATION = (
    "audited and held-out rows are independent rows of one population",
    "a synthetic row does not depend on the row that it replaces, nor on that row's true label",
)

_OWN_ROWS = ("each synthetic row is drawn independently of the others",)


def _own_row_estimates(
    context: AuditContext, original: FeatureTable, rows: IndexArray
) -> Iterator[Estimate]:
    """Yield a lower bound of the chance that synthetic rows reveal which rows they replace.

    And the p-value of their being drawn independently of these.

    ``rows``, int64 of shape (m,), are those with synthetic features.
    """
    context.progress.step("comparing synthetic rows with the rows that they replace")
    rng = context.rng(AUDIT_ID, "own-row")
    metric = fit_metric(original, "l2", rng=rng)
    true, made = original.take(rows), context.release.features.take(rows)
    counts = count_own_rows(
        metric.transform(true), metric.transform(made), rng, (hash_rows(true), hash_rows(made))
    )
    yield Estimate.upper_bound(
        stated.OWN_ROWS,
        "Synthetic features were drawn independently of the row that they replace (p-value)",
        max(counts.p_value, SMALLEST_P_VALUE),
        context.plan.confidence,
        unit="p-value",
        n=counts.decisive,
        count=counts.wins,
        method="p-value: as many nearer to their own true row as below, of fair coins (binomial)",
        assumptions=_OWN_ROWS,
        reference="Busa-Fekete et al. (2023), Mechanism 2",
    )
    yield Estimate.lower_bound(
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
        assumptions=_OWN_ROWS,
        reference="Busa-Fekete et al. (2023), Mechanism 2",
    )


def _held_out_estimates(context: AuditContext, rows: IndexArray) -> Iterator[Estimate]:
    """Yield whether the generator has seen audited rows; nothing without held-out rows."""
    release = context.release
    original, held_out = release.original, release.held_out
    if original is None or held_out is None:
        return
    context.progress.step("comparing synthetic rows with audited and held-out rows")
    rng = context.rng(AUDIT_ID, "memorisation")
    audited = original.take(rng.permutation(len(original))[:_MOST_RECORDS])
    others = held_out.take(rng.permutation(len(held_out))[:_MOST_RECORDS])
    # The scale comes from both sets in the same measure, so that it cannot tell them apart.
    size = min(len(audited), len(others))
    scale = joined(audited.take(np.arange(size)), others.take(np.arange(size)))
    at = fit_metric(scale, "l2", rng=rng).transform
    made = release.features.take(rng.permutation(rows)[:_MOST_SYNTHETIC])
    try:
        counts = count_memorisation(at(audited), at(others), at(made), rng)
    except InsufficientDataError:
        return
    level = context.plan.confidence
    strongest = counts.strongest(1 - level)
    yield Estimate.lower_bound(
        "synthetic.memorisation_share",
        "Synthetic rows nearer to audited than to held-out rows",
        counts.share_lower(1 - level),
        level,
        unit="proportion",
        count=strongest.wins,
        method="pairs of an audited and a held-out row: which is the closest record of more "
        "synthetic rows? A fair coin where the generator saw neither; Clopper–Pearson over "
        "decisive pairs, of all pairs or of the most one-sided tenth, hundredth …, corrected for "
        "that choice",
        n=strongest.decisive,
        assumptions=_POPULATION,
        reference=_REFERENCE,
    )
    yield Estimate.upper_bound(
        stated.GENERATOR_BLIND,
        "The generator saw none of the audited rows (p-value)",
        max(counts.p_value, SMALLEST_P_VALUE),
        level,
        unit="p-value",
        n=strongest.decisive,
        count=strongest.wins,
        method="p-value: the same pairs, by fair coins (binomial), corrected for the choice",
        assumptions=_POPULATION,
        reference=_REFERENCE,
    )
    yield Estimate.lower_bound(
        "synthetic.training_epsilon_lower",
        "ε of the generator’s training",
        counts.epsilon_lower(1 - level),
        level,
        unit="nats",
        method="the same pairs: ε of exchanging one training row of the generator",
        n=strongest.decisive,
        assumptions=_POPULATION,
        reference=_REFERENCE,
    )


def _copies(made: Float32Array, originals: Float32Array) -> Iterator[Estimate]:
    """Yield the share of copies, and of original rows that repeat: what copies mean."""
    _, inverse, counts = np.unique(row_keys(originals), return_inverse=True, return_counts=True)
    copied, repeated = exact_copies(made, originals), counts[inverse] > 1
    for found, (name, title, rows, given) in zip((copied, repeated), _COPIES, strict=True):
        yield Estimate.estimated(
            f"synthetic.{name}_share",
            title,
            float(found.mean()),
            unit="proportion",
            n=len(found),
            count=int(found.sum()),
            method=f"{rows} original row in every column, counted",
            assumptions=(given,),
        )


def _copied(made: Float32Array, originals: Float32Array) -> Iterator[Estimate]:
    """Yield how many synthetic rows were copied from one person; nothing where chance is as likely.

    A mixture of copies, which equal a row that one person has as often as people do, and of new
    rows of the population, which equal one by the chance of Good (1953).
    """
    values, counts = np.unique(row_keys(originals), return_counts=True)
    of_copies = float((counts == 1).sum()) / len(originals)
    by_chance = min(2 * float((counts == 2).sum()) / len(originals), 1.0)
    if of_copies <= 2 * by_chance:
        return
    equal = np.isin(row_keys(made), values[counts == 1])
    yield Estimate.estimated(
        stated.COPIED,
        "Synthetic rows that are copies of one audited person's row",
        float(np.clip((equal.mean() - by_chance) / (of_copies - by_chance), 0.0, 1.0)),
        unit="proportion",
        n=len(made),
        count=int(equal.sum()),
        method="synthetic rows that equal an original row which one person has, as a mixture of "
        f"copies ({of_copies:.1%} do) and of new rows of the population ({by_chance:.1%})",
        assumptions=("new synthetic rows equal a person's row as often as new people's rows do",),
        reference="Good (1953), Eq. (2)",
    )


def _nearness(context: AuditContext, original: FeatureTable, rows: IndexArray) -> Estimate:
    """Return the share of synthetic rows nearer to originals than originals are to one another."""
    # Both look for their closest record among the same other half of the originals.
    rng = context.rng(AUDIT_ID, "nearness")
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
) -> Iterator[Estimate]:
    context.progress.step("distinguishing synthetic from true rows")
    rng = context.rng(AUDIT_ID, "discriminator")
    released, _ = as_matrix(context.release.features.take(rows))
    # Copies of one synthetic row would be recognised from one half in the other.
    _, first = np.unique(row_keys(released), return_index=True)
    q = released[rng.permutation(first)[:_MOST_ROWS]]
    p, categorical = as_matrix(original.take(_balanced(context, len(original), rng)[:_MOST_ROWS]))
    size = min(len(p), len(q))
    if size < _FEWEST_DISTINCT * 2:
        return
    half = size // 2
    p, q = p[: 2 * half], q[: 2 * half]
    kind = kinds_for(p.shape[1], categorical, half)[0]
    model = fit_discriminator(
        p[:half],
        q[:half],
        kind,
        rng=rng,
        categorical=categorical,
        threads=context.plan.threads,
        device=device_for([kind], context.plan.device),
    )
    value = auc(model.log_ratio(p[half:]), model.log_ratio(q[half:]))
    alpha = (1 - context.plan.confidence) / 2
    yield Estimate.interval(
        "synthetic.discriminator_auc",
        "AUC of distinguishing synthetic from true rows",
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


def synthetic_parts(context: AuditContext) -> Iterator[Part]:
    """Yield how realistic synthetic rows are, and what they reveal of the rows they replace."""
    release, original = context.release, context.release.original
    assert original is not None
    rows = np.flatnonzero(replaced_rows(original, release.features)).astype(np.int64)
    claim = context.claim.offers(SyntheticFeatures)
    if claim is not None:
        yield kept_features(original, release.features, claim.noise, context.plan.confidence)
    if len(rows) < FEWEST:
        few = (
            f"Synthetic features need at least {FEWEST} rows whose released features differ "
            "from the original ones."
        )
        if claim is None:
            raise InsufficientDataError(few)
        yield Note.info("synthetic", few)
        return
    made, originals = as_matrix(release.features.take(rows))[0], as_matrix(original)[0]
    found = (
        replaced_share(len(rows), len(release), context.plan.confidence),
        *_own_row_estimates(context, original, rows),
        *_copies(made, originals),
        *_copied(made, originals),
        _nearness(context, original, rows),
        *_discriminator(context, original, rows),
        *_held_out_estimates(context, rows),
        *attack_estimates(context, original, rows),
    )
    if release.groups is not None:  # Rows of one person are alike, and so are pairs with them.
        found = tuple(as_estimate(e) if _POPULATION[0] in e.assumptions else e for e in found)
    yield from found
    yield from _notes(context, found)


def replaced_share(replaced: int, rows: int, confidence: float) -> Estimate:
    """Return the share of rows with other features than the original, with its exact interval."""
    low, high = clopper_pearson(replaced, rows, 1 - confidence)
    return Estimate.interval(
        "synthetic.replaced_share",
        "Share of rows with synthetic features",
        replaced / rows,
        (float(low), float(high)),
        confidence,
        unit="proportion",
        n=rows,
        count=replaced,
        method="rows whose released features differ from the original ones, Clopper–Pearson",
        assumptions=("each row's features are replaced independently of the others",),
        reference="Busa-Fekete et al. (2023), Mechanism 2",
    )


def kept_features(
    original: FeatureTable, released: FeatureTable, noise: float, confidence: float
) -> Estimate:
    """Return the p-value of features having been replaced with probability ``noise`` or more.

    A synthetic row equals the true one by chance as often as other people's synthetic rows do;
    twice that, and five rows more, are allowed.
    """
    replaced = replaced_rows(original, released)
    true, made = hash_rows(original), hash_rows(released.take(np.flatnonzero(replaced)))
    values, counts = np.unique(made, return_counts=True)
    places = np.minimum(np.searchsorted(values, true), max(len(values) - 1, 0))
    alike = np.where(values[places] == true, counts[places], 0) if len(values) else np.zeros(1)
    by_chance = (2 * float(alike.mean()) + 5) / max(len(made), 1)
    kept, most = int((~replaced).sum()), 1 - noise * max(1 - by_chance, 0.0)
    return Estimate.upper_bound(
        stated.FEATURES_KEPT,
        "Features that were kept against the declared λ",
        max(float(binom.sf(kept - 1, len(replaced), most)), SMALLEST_P_VALUE),
        confidence,
        unit="p-value",
        n=len(replaced),
        method="p-value: whether more rows have their true features than a replacement with "
        "probability λ leaves (binomial), where synthetic rows may equal the true ones twice as "
        "often as they equal other people's",
        assumptions=(
            "each row's features are replaced independently of the others",
            "synthetic rows equal the true ones at most twice as often as those of other people",
        ),
        reference="Busa-Fekete et al. (2023), Mechanism 2",
    )


def _notes(context: AuditContext, estimates: tuple[Estimate, ...]) -> Iterator[Note]:
    values = {estimate.id: estimate for estimate in estimates}
    claim = context.claim.offers(SyntheticFeatures)
    share, seen = values["synthetic.replaced_share"], values.get("synthetic.training_epsilon_lower")
    low, high = share.low or 0.0, 1.0 if share.high is None else share.high
    warnings = {
        "Fewer rows have other features than the declared λ says. Synthetic rows that equal the "
        "true row by chance count as kept, which happens often where all columns have few "
        "values.": claim is not None and high < claim.noise,
        "More rows have other features than the declared λ says: more were replaced, or kept rows "
        "were changed as well, for instance rounded. The numbers on synthetic rows then cover "
        "those rows too.": claim is not None and low > claim.noise,
        "Synthetic features are nearer to the very row that they replace than to other replaced "
        "rows: they were not drawn independently of it.": (
            values["synthetic.own_row_share"].value > 0.5
        ),
        # The share shows the same, but for few pairs it is rounded down, even to below one half.
        "Synthetic rows are nearer to audited rows than to held-out ones more often than chance "
        "explains: if both are rows of one population, their generator has seen audited rows. The "
        "guarantee of double randomized response assumes that it has not, or that its training "
        "had a privacy budget of its own.": (
            seen is not None and seen.kind == "certified" and seen.value > 0
        ),
        "Synthetic rows single out or link audited people more often than held-out ones: their "
        "generator has seen audited rows, if both are of one population.": any(
            one.kind == "certified" and (one.low or 0.0) > 0
            for name, one in values.items()
            if name.endswith(".risk")
        ),
    }
    remarks = {
        "Whether the generator has seen the audited rows was not tested, nor measured how much it "
        "adds to the risk of singling out and linking them: that needs held-out rows of the same "
        "population (--held-out). Exact copies alone prove nothing where rows repeat.": seen
        is None,
        "Rows belong together (--group), so what they reveal of the generator's training is an "
        "estimate.": seen is not None and seen.kind == "estimated",
        "No mechanism is declared; rows whose features differ were taken as synthetic ones.": (
            context.claim.traits.features == "unknown"
        ),
    }
    yield from (Note.warning(AUDIT_ID, text) for text, holds in warnings.items() if holds)
    yield from (Note.info(AUDIT_ID, text) for text, holds in remarks.items() if holds)
