"""What the release alone says of ε of all columns."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.columns import derived_columns
from ldpaudit.audits.assumptions.rows import Counted
from ldpaudit.audits.mechanism.evidence import outsider_evidence
from ldpaudit.audits.mechanism.release_alone import evidence_of
from ldpaudit.audits.person.answers import Answers
from ldpaudit.estimators.epsilon.release_only.bound import ReleaseOnlyEvidence
from ldpaudit.mechanisms import from_declaration
from ldpaudit.release import Release, ReleasedLabels

_SUM_SHARE: Final = 0.7
"""Of the error probability, where the columns' bounds may be added up and vectors are counted."""
_MOST_VECTORS: Final = 16


@dataclass(frozen=True, eq=False)
class ReleasedEvidence:
    """Groups of rows that features find, counted by what was released of each column, and of all.

    Attributes
    ----------
    columns : tuple of ReleaseOnlyEvidence
        Of the columns; empty where their ε do not add up.
    vectors : ReleaseOnlyEvidence or None
        Of all columns as one label: valid however their draws go together.
    """

    columns: tuple[ReleaseOnlyEvidence, ...]
    vectors: ReleaseOnlyEvidence | None

    def bound(self, alpha: float) -> float:
        """Return the lower bound of ε of all columns at level 1 − alpha, in nats.

        Groups are found by models of released labels, so what is counted of one column may depend
        on another's: each has an equal share of the error probability (Bonferroni).
        """
        share = (_SUM_SHARE if self.vectors else 1.0) if self.columns else 0.0
        parts = [one.bound(share * alpha / len(self.columns)).epsilon for one in self.columns]
        whole = 0.0 if self.vectors is None else self.vectors.bound((1 - share) * alpha).epsilon
        return max(sum(parts), whole)


def released_bound(seen: Answers, *, adds_up: bool) -> Callable[[float], float] | None:
    """Return the lower bound of ε of all columns from the release alone, by its error probability.

    The largest of the strata's, with equal shares of the error. None where there is none.
    ``adds_up``: whether the columns' ε may be added up, because their draws are independent.
    """
    found = [_evidence(one, adds_up=adds_up) for one in seen.within_strata()]
    known = [one for one in found if one.columns or one.vectors is not None]
    if not known:
        return None
    return lambda alpha: max(one.bound(alpha / len(known)) for one in known)


def _evidence(seen: Answers, *, adds_up: bool) -> ReleasedEvidence:
    found = [outsider_evidence(one) for one in seen.contexts] if adds_up else []
    columns = tuple(one for one in found if isinstance(one, ReleaseOnlyEvidence))
    return ReleasedEvidence(columns, _of_vectors(seen))


def _of_vectors(seen: Answers) -> ReleaseOnlyEvidence | None:
    """Return the evidence of all columns as one label, where it has few enough values."""
    first, sizes = seen.contexts[0], [len(one.release.outputs) for one in seen.contexts]
    if prod(sizes) > _MOST_VECTORS:
        return None
    codes = np.stack([one.release.released for one in seen.contexts])
    vectors = tuple(range(prod(sizes)))
    whole = Release(
        first.release.features,
        ReleasedLabels(np.ravel_multi_index(tuple(codes), sizes).astype(np.int32)),
        vectors,
        vectors,
        groups=first.release.groups,
    )
    shared = {"assumptions.counted": Counted(seen.rows)}
    claim = from_declaration(None, vectors)
    context = replace(first, release=whole, claim=claim, _shared=shared)
    derived = {column for one in seen.contexts for column in derived_columns(one)}
    found = evidence_of(context, whole.features.without(derived))
    return found if isinstance(found, ReleaseOnlyEvidence) else None
