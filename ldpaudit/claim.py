"""From a claim in any of its forms to the declaration of a private column."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final

from ldpaudit.errors import InputError, quoted
from ldpaudit.mechanisms.interface import Mechanism, MechanismOptions
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.listing import DEFAULT, EXPLICIT, UNKNOWN
from ldpaudit.mechanisms.registry import families, full_name, traits_of
from ldpaudit.options import AS_FOUND, ClaimOptions, FileOptions, LabelOptions, parse_label
from ldpaudit.release import Declaration, LabelDeclaration

_CLAIM: Final = tuple(field.name for field in fields(ClaimOptions))
_NO_CHANNEL: Final = {"epsilon", "noise", "labels"}

Claim = Mechanism | Declaration | Mapping[str, Any] | ClaimOptions | str | None


def _from_options(claim: ClaimOptions, files: FileOptions) -> Declaration | None:
    """Return the claim that the options state, None where they state none."""
    mechanism, labels = claim.mechanism, claim.labels
    if mechanism is not None and {*":="} & {*mechanism}:
        if replace(claim, mechanism=None) != ClaimOptions():
            raise InputError(
                f"{quoted(mechanism)} says it all already; leave out what else is claimed, or give "
                "the mechanism's name alone."
            )
        return stated_claim(parse_label(f"label:{mechanism}"), files).mechanism
    if claim.channel is not None:
        others = (claim.epsilon, claim.noise, labels)
        if mechanism not in (None, EXPLICIT) or any(value is not None for value in others):
            raise _whole_claim()
        from ldpaudit.datasets import read_channel

        return Declaration(EXPLICIT, read_channel(claim.channel, files), "options")
    stated_labels = _stated_labels(mechanism, labels)
    options = MechanismOptions(epsilon=claim.epsilon, noise=claim.noise, **stated_labels)
    if mechanism is None:
        usual = Declaration(DEFAULT, options.stated(), "options", named=False)
        return usual if usual.parameters else None
    name = full_name(mechanism)
    if mechanism == EXPLICIT:
        raise InputError(f"--mechanism {EXPLICIT} needs its matrix: --channel FILE.")
    if mechanism == UNKNOWN and options.stated():
        raise InputError(f"--mechanism {UNKNOWN} claims nothing; give no ε or λ with it.")
    stated = options.stated() | options.stated_range() | options.stated_classes()
    return Declaration(name, stated, "options")


def _whole_claim() -> InputError:
    return InputError("--channel is a complete claim; give no other mechanism, ε or λ with it.")


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
    """
    if isinstance(mechanism, ClaimOptions):
        return _from_options(mechanism, files)
    if mechanism is None or isinstance(mechanism, Declaration):
        return mechanism
    if isinstance(mechanism, str) and {*":="} & {*mechanism}:
        return _from_options(ClaimOptions(mechanism), files)
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
            "The claimed mechanism must be its name, such as 'rr', with its parameters, such as "
            "'rr:epsilon=1' or {'name': 'rr', 'epsilon': 1.0}, or a mechanism with its parameters. "
            f"Got {'one without' if callable(mechanism) else type(mechanism).__name__} instead."
        )
    return Declaration(mechanism.name, dict(mechanism.declaration()), "api")


def stated_claim(column: LabelOptions, files: FileOptions = AS_FOUND) -> LabelDeclaration:
    """Return the claim that the options state of one private column.

    ``column``: with ``channel``, a table of channels, it may state ``by``, the public column that
    tells which of them a row has; ``classes`` where the claim does not name them. ``files``: how
    a file with channels is written.
    """
    about = f"The column {quoted(column.label)}:"
    other = sorted(column.stated().keys() - {*_CLAIM, "classes", "by", "clipped"})
    if other:
        raise InputError(
            f"{about} {other[0].replace('_', '-')} is no part of a claim; leave it out."
        )
    if column.channel is not None:
        declaration, by = _of_channel(column, files)
    elif column.by is not None:
        raise InputError(f"{about} strata (by) need a table with the channel of each (channel).")
    else:
        stated = {field: getattr(column, field) for field in _CLAIM}
        found, by = _from_options(ClaimOptions(**stated), files), None
        if found is None:
            raise InputError(
                f"Say what made the labels of {quoted(column.label)}: mechanism with epsilon or "
                "lambda, or a channel."
            )
        declaration = found
    declaration = _with_clipping(_with_classes(declaration, column), column)
    return LabelDeclaration(column.label, declaration, by)


def _of_channel(column: LabelOptions, files: FileOptions) -> tuple[Declaration, str | None]:
    """Return the claim that a table of channels makes about a column, and what tells the strata."""
    from ldpaudit.datasets.probabilities import column_channels, only_channels

    if column.mechanism not in (None, EXPLICIT) or column.stated().keys() & _NO_CHANNEL:
        raise _whole_claim()
    assert column.channel is not None
    found = only_channels(column_channels(column.channel, column.by, files), column.label)
    parameters = found.mechanism()
    return Declaration(parameters.pop("name"), parameters, "options"), found.by


def _with_classes(declaration: Declaration, column: LabelOptions) -> Declaration:
    classes = classes_of(column)
    if classes is None:
        return declaration
    if {"classes", "strata"} & declaration.parameters.keys():
        raise InputError("The claim names its classes already; leave out --classes.")
    return replace(declaration, parameters={**declaration.parameters, "classes": classes})


def _with_clipping(declaration: Declaration, column: LabelOptions) -> Declaration:
    """Return the claim, of noisy numbers that were clipped where that is stated (InputError)."""
    if not column.clipped:
        return declaration
    clipping = sorted(f.traits.name for f in families() if "clipped" in f.traits.options)
    if declaration.name not in clipping:
        raise InputError("Only noisy numbers are clipped (clip): " + ", ".join(clipping) + ".")
    return replace(declaration, parameters={**declaration.parameters, "clipped": True})


def classes_of(column: LabelOptions) -> list[Any] | None:
    """Return the labels that the options state of a column, None where they state none."""
    from ldpaudit.datasets.labels import split_labels

    if column.classes is None:
        return None
    text = column.classes
    return list(split_labels(text) if isinstance(text, str) else text)


def claim_of_column(
    column: LabelOptions | None, mechanism: Claim, files: FileOptions = AS_FOUND
) -> tuple[Declaration | None, str | None]:
    """Return the claim about one private column, and the public column of its strata.

    ``column``: the column with the claim of its own (``--label NAME:rr:epsilon=1``);
    ``mechanism``: what is claimed of every column without one; ``files``: how a file with a
    channel is written. The first is None where nothing is claimed, the second where there are no
    strata.
    """
    if column is None or not column.stated():
        return declaration_of(mechanism, files), None
    if mechanism not in (None, ClaimOptions()):
        raise InputError(
            "Give the claim once: with the column (--label NAME:rr:epsilon=1), or for all columns."
        )
    own = stated_claim(column, files)
    return own.mechanism, own.by
