"""How much better a column is guessed, and how much more is lost, with the other columns known.

Both attackers know the true labels of half of the people, learn P(label | features) from them and
combine it with the released label; one sees the other released columns, too. They are compared on
the same people of the other half.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from ldpaudit.attacks.interface import conditioned
from ldpaudit.audits.instance_loss.certificates import held_out_rows
from ldpaudit.audits.instance_loss.labels import loss_labels, measured_channel
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.label_inference.runs import one_of_each_group
from ldpaudit.audits.mechanism.evidence import INDEPENDENT
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.intervals.paired import Folds, paired_interval
from ldpaudit.estimators.loss.donsker_varadhan import MeanLossBound, certified_mean_loss
from ldpaudit.release import BoolArray
from ldpaudit.result import Estimate

FEWEST_ROWS = 80
ATTACK, WITH, WITHOUT = "others.attack_gain", "others.accuracy_with", "others.accuracy_without"
LOSS = "others.instance_loss_gain"
_ATTACK = (
    "an attacker who knows the true labels of half of the people, with the other released columns "
    "less without them; the same held-out people, betting bounds on each of two folds"
)


def gain_estimates(
    together: AuditContext, alone: AuditContext, *, own: bool = True
) -> Iterator[Estimate]:
    """Yield how much more an attack and the mean loss reach with the other columns than without.

    Parameters
    ----------
    together, alone : AuditContext
        The same rows and halves, with the other released columns among the features and without.
    own : bool
        Whether the released label is combined with what the features of ``together`` tell; False
        where it is among them.

    Raises
    ------
    InsufficientDataError
        If there are too few rows.
    """
    if len(together.release) < FEWEST_ROWS:
        raise InsufficientDataError(
            f"What a column loses through the others needs at least {FEWEST_ROWS} rows."
        )
    yield from _attack(together, alone, own)
    yield from _loss(together, alone, own)


def _attack(together: AuditContext, alone: AuditContext, own: bool) -> Iterator[Estimate]:
    level = together.plan.confidence
    with_others, without = _right(together, own), _right(alone, True)
    chosen = [_scored(together, half) for half in (0, 1)]
    parts = tuple(with_others[rows].astype(float) - without[rows] for rows in chosen)
    rows = np.concatenate(chosen)
    cells = (int(with_others[rows].sum()), int(without[rows].sum()))
    found = paired_interval(Folds(parts), 1 - level)
    yield Estimate.interval(
        ATTACK,
        "What an attack gains by the other released columns",
        found.value,
        (found.low, found.high),
        level,
        kind="certified",
        unit="proportion",
        n=found.n,
        method=_ATTACK,
        assumptions=(INDEPENDENT,),
        reference="Waudby-Smith & Ramdas (2024)",
    )
    for name, title, right in (
        (WITH, "Accuracy with the other released columns", cells[0]),
        (WITHOUT, "Accuracy without them", cells[1]),
    ):
        yield Estimate.estimated(
            name,
            title,
            right / len(rows),
            unit="proportion",
            n=len(rows),
            count=right,
            method="held-out guesses of the same attacker",
            assumptions=(INDEPENDENT,),
        )


def _right(context: AuditContext, own: bool) -> BoolArray:
    """Return which rows the attacker who learns from the other half guesses right."""
    release, truth = context.release, context.truth
    posterior = cross_fitted_posterior(context, "truth")
    right = np.zeros(len(truth), dtype=np.bool_)
    k, m = len(release.classes), len(release.outputs)
    for half in (0, 1):
        fitting, held_out = context.half(half), context.half(1 - half)
        seen = posterior[held_out]
        if own:
            channel = measured_channel(truth[fitting], release.released[fitting], k, m)
            seen = conditioned(seen, channel.T[release.released[held_out]])
        right[held_out] = seen.argmax(axis=1) == truth[held_out]
    return right


def _scored(context: AuditContext, half: int) -> np.ndarray:
    """Return the rows of one half that count: of a stated group one."""
    rows = context.half(half)
    scored = one_of_each_group(context, rows, str(half))
    return rows if scored is None else rows[scored]


def _loss(together: AuditContext, alone: AuditContext, own: bool) -> Iterator[Estimate]:
    with_others, without = _mean_loss(together, own), _mean_loss(alone, True)
    differences = with_others.values - without.values
    value = float(differences.mean()) + with_others.payoff.constant - without.payoff.constant
    level = together.plan.confidence
    margin = float(ndtri((1 + level) / 2) * differences.std() / np.sqrt(len(differences)))
    yield Estimate.interval(
        LOSS,
        "What people lose on average by the other released columns",
        value,
        (value - margin, value + margin),
        level,
        kind="estimated",
        unit="nats",
        n=len(differences),
        method="the mean loss E[ν] by a model that sees the other released columns, less that by "
        "one that does not; the same held-out people, normal approximation",
        assumptions=("the models' log-odds are the best there are", INDEPENDENT),
        reference="Nguyen, Wainwright & Jordan (2010), Eq. (9)",
    )


def _mean_loss(context: AuditContext, own: bool) -> MeanLossBound:
    labels = loss_labels(context, 1 - context.plan.confidence)
    rng = context.rng("instance-loss", "certificate")
    rows = held_out_rows(context, labels)
    if not own:
        rows = replace(rows, channel=np.full_like(rows.channel, 1 / rows.channel.shape[1]))
    return certified_mean_loss(rows, rng=rng)["donsker-varadhan"]
