"""What the release alone says of the vector's ε: the columns' bounds added up."""

from collections.abc import Callable

from ldpaudit.audits.mechanism.evidence import outsider_evidence
from ldpaudit.audits.vectors.seen import SeenVector
from ldpaudit.estimators.epsilon.release_only.bound import ReleaseOnlyEvidence


def released_bound(seen: SeenVector) -> Callable[[float], float] | None:
    """Return the lower bound of the vector's ε from the release alone, by its error probability.

    The columns' ε add up where draws are independent. Groups of rows are found by models of the
    released labels, so what is counted of one column may depend on another's: each has an equal
    share of the error probability (Bonferroni). None where no column has a bound, or the draws are
    claimed to go together.
    """
    if not seen.independent:
        return None
    found = [outsider_evidence(one) for one in seen.contexts]
    tests = [one for one in found if isinstance(one, ReleaseOnlyEvidence)]
    if not tests:
        return None
    return lambda alpha: sum(one.bound(alpha / len(tests)).epsilon for one in tests)
