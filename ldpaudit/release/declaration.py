"""What is declared about the mechanism that made one released column, or several."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from ldpaudit.errors import InputError, did_you_mean, quoted


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
    added : tuple of str
        Parameters that the options state, where the rest is a file's.
    named : bool
        Whether the mechanism was named; else ``name`` is the usual one.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    source: Literal["file", "options", "policy", "api"] = "file"
    added: tuple[str, ...] = ()
    named: bool = True


# How a release was made, as it declares itself, where that breaks its promise: with draws that can
# be repeated; with features of a generator that was trained on private rows.
FaultOfMaking = Literal["experiment", "generator"]

# The parameters that state how much noise there is.
AMOUNTS: Final = {"epsilon": "ε", "lambda": "λ"}


def amounts_differ(declared: str, given: str) -> InputError:
    """Return the error of a file and options that declare different amounts of noise."""
    return InputError(
        f"The file declares {declared}, and the options say {given}; leave out the options, or "
        "correct the declaration."
    )


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
class DeclaredColumns:
    """The private columns that a file declares, where not all of them are audited.

    Attributes
    ----------
    claims : mapping from columns to float or None
        ε, in nats, of what was drawn together: of one column, or of all columns of a joint
        mechanism; None where that is not known.
    """

    claims: Mapping[tuple[str, ...], float | None]

    @property
    def count(self) -> int:
        """How many columns there are."""
        return len({name for names in self.claims for name in names})

    @property
    def epsilon(self) -> float | None:
        """What all of them claim together, in nats; None where that is not known."""
        known = [epsilon for epsilon in self.claims.values() if epsilon is not None]
        return math.fsum(known) if len(known) == len(self.claims) else None


@dataclass(frozen=True)
class ColumnsDeclaration:
    """What is declared about the private columns of one release: one, or several.

    Attributes
    ----------
    labels : tuple of LabelDeclaration, length d
        The private columns.
    joint : Declaration or None
        The mechanism that released all of them together; None: independent draws, one mechanism
        for each column.
    provenance : mapping
        How the release was made; it is no part of the claim.
    before : tuple of str
        Columns that were there before the noise and are released as they were; no part of the
        claim.
    receipt : mapping
        The scheme by which its noise was drawn from a key, the commitment to the key, and the
        number of rows; empty without one.
    """

    labels: tuple[LabelDeclaration, ...]
    joint: Declaration | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    receipt: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The private columns' names."""
        return tuple(one.label for one in self.labels)

    @property
    def label(self) -> str:
        """The only private column's name (InputError where there are several)."""
        return self.column().label

    @property
    def mechanism(self) -> Declaration:
        """What released the only private column (InputError where there are several)."""
        mechanism = self.column().mechanism
        assert mechanism is not None  # A joint mechanism has several columns.
        return mechanism

    def column(self, label: str | None = None) -> LabelDeclaration:
        """Return what is declared about one column; ``None``: about the only one.

        Raises
        ------
        InputError
            If there are several and none was named, or the one named is not among them.
        """
        if label is None and len(self.labels) > 1:
            raise InputError(
                f"The file declares {len(self.labels)} private columns; say which one is meant "
                "(--label)."
            )
        found = [one for one in self.labels if label in (None, one.label)]
        if found:
            return found[0]
        raise InputError(
            f"{quoted(str(label))} is none of the private columns ({len(self.labels)}) that the "
            "file declares, and its claim is about those only"
            + did_you_mean(str(label), self.names)
        )

    def only(self, labels: tuple[str, ...]) -> "ColumnsDeclaration":
        """Return what is declared about some of the columns, in the order asked for.

        Raises
        ------
        InputError
            If one is not declared, or a joint mechanism released them with others.
        """
        chosen = tuple(self.column(label) for label in labels)
        if self.joint is not None and set(labels) != set(self.names):
            raise InputError(
                f"One mechanism released all {len(self.labels)} declared columns together: audit "
                "one of them, or all."
            )
        if self.joint is not None:
            return self
        return replace(self, labels=chosen)
