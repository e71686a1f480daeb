"""How much better a private column is guessed by who sees the other released columns, too.

Both attackers know the true labels of half of the people, learn P(label | features) from them and
combine it with the released label; one sees the other released columns, too. They are compared on
the same people of the other half.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ldpaudit.attacks.interface import conditioned
from ldpaudit.audits.instance_loss.labels import measured_channel
from ldpaudit.audits.interface import AuditContext, Companions, Counts
from ldpaudit.audits.label_inference.runs import one_of_each_group
from ldpaudit.audits.mechanism.evidence import INDEPENDENT
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.intervals.paired import Folds, paired_interval
from ldpaudit.release import BoolArray, FeatureTable, Release
from ldpaudit.result import Estimate, Finding

FEWEST_ROWS: Final = 80
ATTACK, WITH, WITHOUT = "others.attack_gain", "others.accuracy_with", "others.accuracy_without"
_ATTACK: Final = (
    "an attacker who knows the true labels of half of the people, with the other released columns "
    "less without them; the same held-out people, betting bounds on each of two folds"
)


class OtherColumnsAudit:
    """Compares what is learnt of a column with the other released columns and without them."""

    id = "others"
    counts: Counts = "rows"

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why it does not apply, None where the release has several private columns."""
        if context.companions is None:
            return "the release has one private column"
        return None if context.release.truth is not None else "it needs true labels"

    def run(self, context: AuditContext) -> Finding:
        """Run it."""
        assert context.companions is not None
        if len(context.release) < FEWEST_ROWS:
            raise InsufficientDataError(
                f"What the other columns reveal needs at least {FEWEST_ROWS} rows."
            )
        both = Both.of(context, context.companions)
        own = not draws_go_together(context.companions)
        return Finding(tuple(_attack(both.with_companions, both.alone, own)))


@dataclass(frozen=True)
class Both:
    """One column as two attackers see it.

    Attributes
    ----------
    companions : Companions
    with_companions : AuditContext
        With the other released columns among the features.
    alone : AuditContext
        Without them; rows, halves, labels and claim are the same.
    """

    companions: Companions
    with_companions: AuditContext
    alone: AuditContext

    @classmethod
    def of(cls, context: AuditContext, companions: Companions) -> "Both":
        """See the column of a context in both ways."""
        with_companions, alone = companions.with_companions().features, companions.alone().features
        if draws_go_together(companions):
            with_companions = _with_own(with_companions, context.release)
        return cls(companions, _seen(context, with_companions), _seen(context, alone))


def draws_go_together(companions: Companions) -> bool:
    """Return whether one joint mechanism is claimed to have drawn the columns of a row."""
    return companions.claim is not None and not companions.claim.independent


def _with_own(features: FeatureTable, release: Release) -> FeatureTable:
    """Return features with the released label among them: its noise goes along with the others'."""
    own = release.released[:, None].astype(np.int32)
    return replace(
        features,
        categorical=np.hstack([features.categorical, own]),
        cardinalities=(*features.cardinalities, len(release.outputs)),
        columns=features.columns + 1,
    )


def _seen(context: AuditContext, features: FeatureTable) -> AuditContext:
    """Return the context of the same rows with other features, and the same halves."""
    if features.width == context.release.features.width:
        return context
    same = replace(context.release, features=features, columns=())
    shared = {"halves": context.halves()}
    return replace(context, release=same, whole=None, _shared=shared)


def _attack(with_companions: AuditContext, alone: AuditContext, own: bool) -> Iterator[Estimate]:
    level = with_companions.plan.confidence
    with_others, without = _right(with_companions, own), _right(alone, True)
    chosen = [_scored(with_companions, half) for half in (0, 1)]
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
