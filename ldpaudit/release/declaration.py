"""What is declared about the mechanism that made one released column, or several."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Declaration:
    """What a file, or its owner, says about the mechanism that made the released labels.

    Attributes
    ----------
    name : str
        The mechanism's name in the contract, for instance ``"randomized-response"``.
    parameters : mapping
        Its parameters as declared (``lambda``, ``epsilon``, ``classes``, ``matrix`` …), unchecked:
        :func:`ldpaudit.mechanisms.from_declaration` checks them.
    source : {"file", "options", "policy", "api"}
        Who declared it.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    source: Literal["file", "options", "policy", "api"] = "file"


@dataclass(frozen=True)
class LabelDeclaration:
    """One private column of a release of several.

    Attributes
    ----------
    label : str
        The column's name.
    mechanism : Declaration or None
        What released it, drawn independently of the other columns; None where one joint mechanism
        released all of them.
    by : str or None
        A public column: rows with different values of it have channels of their own, which
        ``mechanism`` states.
    """

    label: str
    mechanism: Declaration | None = None
    by: str | None = None


@dataclass(frozen=True)
class VectorDeclaration:
    """What is declared about several private columns of one release.

    Attributes
    ----------
    labels : tuple of LabelDeclaration, length d
        The private columns.
    joint : Declaration or None
        The mechanism that released all of them together; None: independent draws, one mechanism
        for each column.
    provenance : mapping
        How the release was made; it is no part of the claim.
    """

    labels: tuple[LabelDeclaration, ...]
    joint: Declaration | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The private columns' names."""
        return tuple(one.label for one in self.labels)
