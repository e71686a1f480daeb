"""A private prior, drawn again from its key, and the mechanism that is designed for it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ldpaudit.doors import InputError, family
from ldpaudit.extras.receipt.drawing import Column, NotDrawnError, classes_of, true_codes
from ldpaudit.mechanisms import MechanismOptions
from ldpaudit.mechanisms.keyed import NoiseKey
from ldpaudit.mechanisms.prior_budget import private_prior
from ldpaudit.receipt.commitment import PrivatePrior
from ldpaudit.release import ColumnsDeclaration

# Solvers of two platforms agree up to this.
_TOLERANCE: Final = 1e-6
_OF_DATA: Final = "private histogram"
UNSEEN: Final = "the private prior, of which the file of true labels does not say how it was drawn"


def has_private_prior(declared: ColumnsDeclaration, column: str) -> bool:
    """Return whether a column's mechanism was designed for a private prior."""
    sources = declared.provenance.get("prior")
    if isinstance(sources, Mapping):
        return bool(sources.get(column) == _OF_DATA)
    return bool(sources == _OF_DATA)


def check_priors(
    declared: ColumnsDeclaration,
    columns: Sequence[Column],
    priors: Mapping[str, PrivatePrior],
    key: NoiseKey,
) -> str:
    """Draw all private priors again and design for them.

    Returns what could not be compared, in words; "" where all was, or there is none.
    NotDrawnError where a mechanism is not the declared one, or ε is not what was spent.
    """
    asked = [one for one in columns if has_private_prior(declared, one.name)]
    if any(one.name not in priors for one in asked):
        return UNSEEN
    stated = declared.provenance.get("epsilon")
    spent = stated.get("prior") if isinstance(stated, Mapping) else None
    total = sum(priors[one.name].epsilon for one in asked)
    known = isinstance(spent, int | float) and math.isclose(spent, total, rel_tol=1e-9)
    if asked and not known:
        raise NotDrawnError("the private priors cost another ε than the declaration says")
    for one in asked:
        if not _as_declared(one, priors[one.name], key):
            raise NotDrawnError(
                "the mechanism that the private prior gives here is not the declared one: it was "
                "designed otherwise, or by another version"
            )
    return ""


def _as_declared(column: Column, prior: PrivatePrior, key: NoiseKey) -> bool:
    """Return whether a column's mechanism is the one that its private prior gives."""
    mechanism = column.mechanism.after_rounding
    classes = classes_of(mechanism)
    counts = np.bincount(true_codes(column, key), minlength=len(classes))
    try:
        probabilities = private_prior(counts, prior.epsilon, key.stream("prior", column.name).at())
        options = MechanismOptions(
            epsilon=prior.left, classes=classes, prior=probabilities, loss=prior.loss
        )
        designed = family(mechanism.name).from_options(options)
    except InputError:
        return False
    return _alike(dict(designed.declaration()), dict(mechanism.declaration()))


def _alike(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same up to rounding."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(_alike(a, b) for a, b in pairs)
    numbers = [isinstance(v, int | float) and not isinstance(v, bool) for v in (one, other)]
    if all(numbers):
        return math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return bool(one == other)
