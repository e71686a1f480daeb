"""Is more declared than the policy allows? Exact arithmetic, whatever was measured."""

from dataclasses import dataclass
from typing import Final

from ldpaudit.judging.checks.interface import Answer
from ldpaudit.judging.policy.sections import ClaimSection
from ldpaudit.release import DeclaredColumns
from ldpaudit.reports.text.numbers import against

_DIGITS: Final = 9
"""A sum of ε is exact to so many digits."""


@dataclass(frozen=True)
class Beyond:
    """The answer where more is declared than the policy allows, and the limit in nats."""

    limit: float
    answer: Answer


def beyond_the_policy(
    claim: ClaimSection | None,
    epsilon: float | None,
    extent: str,
    declared: DeclaredColumns | None,
) -> Beyond | None:
    """Return the answer where more is declared than a policy allows; None where it is not.

    Parameters
    ----------
    claim : ClaimSection or None
    epsilon : float or None
        What is declared of what was audited, in nats.
    extent : str
        What it is added up over, such as ``"over 2 releases"``.
    declared : DeclaredColumns or None
        All private columns of the files, where some of them are not audited.
    """
    if claim is None or claim.limit.epsilon is None:
        return None
    if declared is not None and declared.epsilon is not None:
        epsilon, columns = declared.epsilon, f"all {declared.count} private columns"
        extent = f"of {columns} {extent}" if "releases" in extent else f"over {columns}"
    most = claim.limit.epsilon
    if epsilon is None or epsilon <= most * (1 + 1e-9):
        return None
    value, allowed = against(round(epsilon, _DIGITS), most, "up")
    place = f" {extent}" if extent else ""
    reason = f"ε = {value} is declared{place}, and the policy allows {allowed}{claim.limit.words}"
    return Beyond(most, Answer("fail", epsilon, reason))
