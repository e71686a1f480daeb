"""What an attacker learns of a column's label from the other released columns."""

from dataclasses import dataclass, replace

import numpy as np

from ldpaudit.audits.interface import AuditContext, Beside, Counts
from ldpaudit.audits.through_others.bounds import bound_estimates
from ldpaudit.audits.through_others.gains import gain_estimates
from ldpaudit.errors import InsufficientDataError
from ldpaudit.release import FeatureTable, Release
from ldpaudit.result import Estimate, Finding, Note

AUDIT_ID = "others"


@dataclass(frozen=True)
class Both:
    """One column as two attackers see it.

    Attributes
    ----------
    beside : Beside
    together : AuditContext
        With the other released columns among the features.
    alone : AuditContext
        Without them; rows, halves, labels and claim are the same.
    """

    beside: Beside
    together: AuditContext
    alone: AuditContext

    @classmethod
    def of(cls, context: AuditContext, beside: Beside) -> "Both":
        """See the column of a context in both ways."""
        together, alone = beside.together().features, beside.alone().features
        if draws_go_together(beside):
            together = _with_own(together, context.release)
        return cls(beside, _seen(context, together), _seen(context, alone))


def draws_go_together(beside: Beside) -> bool:
    """Return whether one joint mechanism is claimed to have drawn the columns of a row."""
    return beside.claim is not None and not beside.claim.independent


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


class ThroughOthersAudit:
    """Compares what is learnt of a column with the other released columns and without them."""

    id = AUDIT_ID
    counts: Counts = "rows"

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why it does not apply, None where the release has several private columns."""
        if context.beside is None:
            return "the release has one private column"
        return None

    def run(self, context: AuditContext) -> Finding:
        """Run it; without true labels only what the claims allow is said."""
        assert context.beside is not None
        estimates: list[Estimate] = list(bound_estimates(context, context.beside))
        notes: list[Note] = []
        if context.release.truth is not None:
            both = Both.of(context, context.beside)
            try:
                estimates += gain_estimates(
                    both.together, both.alone, own=not draws_go_together(context.beside)
                )
            except InsufficientDataError as error:
                notes.append(Note.info(AUDIT_ID, str(error)))
        return Finding(tuple(estimates), notes=tuple(notes))
