"""From a claim in any of its forms to a declaration: of one private column, or of several."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.options import MechanismOptions
from ldpaudit.mechanisms.places import DEFAULT, EXPLICIT, UNKNOWN
from ldpaudit.mechanisms.registry import families, full_name, traits_of
from ldpaudit.options import AS_FOUND, ClaimOptions, FileOptions, LabelOptions
from ldpaudit.release import Declaration, LabelDeclaration, VectorDeclaration

Claim = Mechanism | Declaration | Mapping[str, Any] | ClaimOptions | str | None


def _from_options(claim: ClaimOptions, files: FileOptions) -> Declaration | None:
    """Return the claim that the options state, None where they state none."""
    mechanism, labels = claim.mechanism, claim.labels
    if claim.channel is not None:
        others = (claim.epsilon, claim.noise, labels)
        if mechanism not in (None, EXPLICIT) or any(value is not None for value in others):
            raise InputError("--channel is a whole claim; give no other mechanism, ε or λ with it.")
        from ldpaudit.datasets import read_channel

        return Declaration(EXPLICIT, read_channel(claim.channel, files), "options")
    stated_labels = _stated_labels(mechanism, labels)
    options = MechanismOptions(epsilon=claim.epsilon, noise=claim.noise, **stated_labels)
    if mechanism is None:
        return Declaration(DEFAULT, options.stated(), "options") if options.stated() else None
    name = full_name(mechanism)
    if mechanism == EXPLICIT:
        raise InputError(f"--mechanism {EXPLICIT} needs its matrix: --channel FILE.")
    if mechanism == UNKNOWN and options.stated():
        raise InputError(f"--mechanism {UNKNOWN} claims nothing; give no ε or λ with it.")
    stated = options.stated() | options.stated_range() | options.stated_classes()
    return Declaration(name, stated, "options")


def _stated_labels(mechanism: str | None, labels: str | None) -> dict[str, Any]:
    """Return how ``--labels`` states the labels of a mechanism on numbers."""
    if labels is None:
        return {}
    numeric = sorted(f.traits.name for f in families() if f.traits.numeric)
    if mechanism not in numeric:
        raise InputError("--labels must come with a --mechanism on numbers: " + ", ".join(numeric))
    stated = LabelRange.parse(labels)
    if "range" in traits_of(mechanism).needs:
        return {"labels": stated}
    return {"classes": stated.classes}


def declaration_of(
    mechanism: Claim,
    files: FileOptions = AS_FOUND,
) -> Declaration | None:
    """Return the declaration of a claim in any of its forms, None where nothing is claimed.

    ``files``: how a file with a channel is written.

    Raises
    ------
    InputError
        If it is none of these, a mapping has no name, or options contradict one another.
    """
    if isinstance(mechanism, ClaimOptions):
        return _from_options(mechanism, files)
    if mechanism is None or isinstance(mechanism, Declaration):
        return mechanism
    if isinstance(mechanism, str):
        return Declaration(full_name(mechanism), {}, "api")
    if isinstance(mechanism, Mapping):
        parameters = dict(mechanism)
        name = parameters.pop("name", None)
        if not isinstance(name, str):
            raise InputError("A declared mechanism must have a 'name'.")
        return Declaration(full_name(name), parameters, "api")
    if not isinstance(mechanism, Mechanism):
        raise InputError(
            "The claimed mechanism must be its name, such as 'rr', a mapping such as "
            "{'name': 'rr', 'epsilon': 1.0}, or a mechanism with its parameters. "
            f"Got {'a class' if isinstance(mechanism, type) else type(mechanism).__name__} instead."
        )
    return Declaration(mechanism.name, dict(mechanism.declaration()), "api")


def claim_of_column(
    column: LabelOptions | None, mechanism: Claim, files: FileOptions = AS_FOUND
) -> Declaration | None:
    """Return the claim about one private column, None where nothing is claimed.

    Parameters
    ----------
    column : LabelOptions or None
        The column with the claim of its own (``--label NAME:rr:epsilon=1``).
    mechanism : claim in any of its forms
        What is claimed of every column without one.
    files : FileOptions
        How a file with a channel is written.

    Raises
    ------
    InputError
        If both state a claim, or the column's cannot be one.
    """
    stated = {} if column is None else column.stated()
    if not stated:
        return declaration_of(mechanism, files)
    if mechanism not in (None, ClaimOptions()):
        raise InputError(
            "State the claim once: with the column (--label NAME:rr:epsilon=1), or for all columns."
        )
    known = {field.name for field in fields(ClaimOptions)}
    unknown = sorted(stated.keys() - known)
    if unknown:
        raise InputError(
            f"A claim about a column cannot state {', '.join(unknown).replace('_', '-')} here; "
            "write it into the file's declaration (ldpaudit declare)."
        )
    return _from_options(ClaimOptions(**stated), files)


def claims_of_columns(
    columns: Sequence[LabelOptions], mechanism: Claim, files: FileOptions = AS_FOUND
) -> VectorDeclaration | None:
    """Return the claims about several private columns, None where the options claim nothing.

    Raises
    ------
    InputError
        As :func:`claim_of_column`, or if only some columns have a claim.
    """
    own = [bool(one.stated()) for one in columns]
    shared = mechanism if not any(own) else None
    if any(own) and not all(own):
        raise InputError(
            "State the claim of each private column (--label NAME:rr:epsilon=1), or of none."
        )
    if any(own) and mechanism not in (None, ClaimOptions()):
        claim_of_column(columns[0], mechanism, files)
    claims = [claim_of_column(one, shared, files) for one in columns]
    if not claims or None in claims:
        return None
    stated = zip(columns, claims, strict=True)
    return VectorDeclaration(tuple(LabelDeclaration(one.label, claim) for one, claim in stated))
