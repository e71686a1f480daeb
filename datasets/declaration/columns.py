"""What a declaration claims about each private column alone."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ldpaudit.errors import InputError
from ldpaudit.release import ColumnsDeclaration, Declaration, LabelDeclaration

Marginals = Callable[[Declaration], Sequence[Declaration]]
"""Gives for a joint mechanism the exact claim about each of its columns alone."""


def claims_of(
    declared: ColumnsDeclaration, marginals: Marginals | None
) -> tuple[LabelDeclaration, ...]:
    """Return the claim about each column alone: of a joint mechanism its exact marginal.

    Raises
    ------
    InputError
        If there is a joint mechanism, and nothing that gives its marginals.
    """
    if declared.joint is None:
        return declared.labels
    if marginals is None:
        raise InputError(
            f"One mechanism released all {len(declared.labels)} declared columns together; its "
            "columns cannot be read one by one here."
        )
    claims = zip(declared.labels, marginals(declared.joint), strict=True)
    return tuple(replace(one, mechanism=claim) for one, claim in claims)


def claim_about(
    declared: ColumnsDeclaration, label: str | None, marginals: Marginals | None
) -> LabelDeclaration:
    """Return what is claimed about one column; ``None``: about the only one.

    Raises
    ------
    InputError
        If it is not clear which, it is not declared, or :func:`claims_of` raises.
    """
    name = declared.column(label).label
    return next(one for one in claims_of(declared, marginals) if one.label == name)
