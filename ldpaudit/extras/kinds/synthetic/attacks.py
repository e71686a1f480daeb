"""Attacks on the synthetic table: what it reveals of audited people that it does not of others."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from ldpaudit.doors import AuditContext, Estimate, FeatureTable, IndexArray, clopper_pearson
from ldpaudit.estimators.metric import fit_metric
from ldpaudit.extras.kinds.synthetic.counts import codes_of, linked, paired, singled_out
from ldpaudit.models.counts import hash_rows
from ldpaudit.release import BoolArray, Float32Array, joined
from ldpaudit.result import Score

_MOST_PEOPLE: Final = 5_000
_MOST_SYNTHETIC: Final = 10_000
_FEWEST: Final = 20
_REFERENCE: Final = "Giomi, Boenisch, Wehmeyer & Tasnádi (2023)"
_HOW: Final = {
    "singling_out": (
        "Singling out",
        "one guess for each synthetic row: only one person has its values in random columns, two "
        "more than single it out among synthetic rows (numbers in 20 bins)",
        "the same with every column of the synthetic rows shuffled",
    ),
    "linkability": (
        "Linkability",
        "the two halves of a person's columns, split at random, are linked where both have the "
        "same closest synthetic row",
        "one synthetic row in so many, by chance",
    ),
}
_GIVEN: Final = (
    "audited and held-out rows are independent rows of one population",
    "a synthetic row does not depend on the row that it replaces, nor on that row's true label",
)
_ALIKE: Final = "people are found independently of one another"


def attack_estimates(
    context: AuditContext, original: FeatureTable, rows: IndexArray
) -> Iterator[Estimate]:
    """Yield the success of both attacks on audited and held-out people, naively, and the risk.

    ``rows``, int64 of shape (m,), are those with synthetic features. Without held-out rows only
    the success on audited people, and naively, is known.
    """
    context.progress.step("attacking the synthetic rows")
    rng, others = context.rng("synthetic", "attacks"), context.release.held_out
    size = min(len(original), _MOST_PEOPLE, *(() if others is None else (len(others),)))
    people = original.take(rng.permutation(len(original))[:size])
    if others is not None:
        both = joined(people, others.take(rng.permutation(len(others))[:size]))
        # Pairs side by side: no order tells who was audited.
        people = both.take(np.arange(2 * size).reshape(2, size).T.ravel())
    made = context.release.features.take(rng.permutation(rows))
    made = made.take(np.sort(np.unique(hash_rows(made), return_index=True)[1])[:_MOST_SYNTHETIC])
    if min(size, len(made)) < _FEWEST:
        return
    members = 1 if others is None else 2
    codes, guesses = codes_of(people, made)
    found = singled_out(codes, guesses, rng)
    naive = singled_out(codes, rng.permuted(guesses, axis=0), rng).reshape(-1, members)[:, 0]
    yield from _of_attack(context, "singling_out", found.reshape(-1, members), naive)
    if made.width > 1:
        halves = np.array_split(rng.permutation(made.width), 2)
        sides = [_points(people.without({*h}), made.without({*h}), rng) for h in halves]
        yield from _of_attack(
            context, "linkability", linked(sides).reshape(-1, members), 1 / len(made)
        )


def _points(
    people: FeatureTable, made: FeatureTable, rng: np.random.Generator
) -> tuple[Float32Array, Float32Array]:
    metric = fit_metric(people, "l2", rng=rng)
    return metric.transform(people), metric.transform(made)


def _of_attack(
    context: AuditContext, attack: str, found: BoolArray, naive: BoolArray | float
) -> Iterator[Estimate]:
    """Yield an attack's numbers; ``found``, bool (pairs, 1 or 2), the audited people first."""
    title, method, by_chance = _HOW[attack]
    confidence, n = context.plan.confidence, len(found)

    def rate(measure: str, column: str, who: BoolArray, how: str) -> Estimate:
        count = int(who.sum())
        low, high = clopper_pearson(count, n, 1 - confidence)
        return Estimate.interval(
            f"synthetic.{attack}.{measure}",
            f"{title}: {column}",
            count / n,
            (float(low), float(high)),
            confidence,
            kind="estimated",
            score=Score(subject=attack, measure=measure, row=title, column=column),
            unit="proportion",
            n=n,
            count=count,
            method=how,
            assumptions=(_ALIKE,),
            reference=_REFERENCE,
        )

    yield rate("attack", "audited people", found[:, 0], method)
    if isinstance(naive, float):
        yield Estimate.estimated(
            f"synthetic.{attack}.naive",
            f"{title}: naive",
            naive,
            score=Score(subject=attack, measure="naive", row=title, column="naive"),
            unit="proportion",
            method=by_chance,
        )
    else:
        yield rate("naive", "naive", naive, by_chance)
    if found.shape[1] == 1:
        return
    yield rate("control", "held-out people", found[:, 1], method)
    pairs = paired(found)
    yield Estimate.interval(
        f"synthetic.{attack}.risk",
        f"{title}: risk",
        pairs.value,
        pairs.interval((1 - confidence) / 2),
        confidence,
        score=Score(subject=attack, measure="risk", row=title, column="risk"),
        unit="proportion",
        n=n,
        method="(a − c)/(1 − c), a and c the shares of audited and held-out people who are found; "
        "pairs of an audited and a held-out person, Clopper–Pearson at half the error probability, "
        "for two attacks",
        assumptions=_GIVEN,
        reference=_REFERENCE,
    )
