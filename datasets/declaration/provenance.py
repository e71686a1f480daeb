"""How a release says it was made; it is no part of the claim."""

import math
from collections.abc import Mapping
from typing import Any

from ldpaudit.datasets.declaration.agreement import AGREEMENT
from ldpaudit.errors import InputError


def checked_provenance(value: Any) -> Mapping[str, Any]:
    """Return a declared provenance; the parts of ε must add up to its total.

    It may state ``randomness``, ``classes``, ``prior``, and under ``epsilon`` the parts ``prior``
    and ``labels`` of a ``total``, in nats.

    Raises
    ------
    InputError
        If it is no object, or they do not.
    """
    if not isinstance(value, dict):
        raise InputError("The declared provenance must be a JSON object.")
    if "epsilon" not in value:
        return value
    parts = value["epsilon"]
    named = map(parts.get, ("prior", "labels", "total")) if isinstance(parts, dict) else ()
    numbers = [v for v in named if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) < 3 or not math.isclose(
        numbers[0] + numbers[1], numbers[2], rel_tol=AGREEMENT, abs_tol=AGREEMENT
    ):
        raise InputError(
            "The declared provenance must state epsilon as prior and labels that add up to total."
        )
    return value


def remarks_on(provenance: Mapping[str, Any]) -> list[str]:
    """Return what a provenance means for the release's reader, in sentences."""
    remarks = []
    if str(provenance.get("randomness", "")).startswith("experimental"):
        remarks.append(
            "The release was made as an experiment, with draws that can be repeated: whoever "
            "knows the seed can undo the mechanism."
        )
    generator = provenance.get("generator")
    if isinstance(generator, Mapping) and generator.get("trained_on") != "public":
        remarks.append(
            "The generator of the synthetic features was trained on private rows: the "
            "guarantee of double randomized response assumes public ones, or a generator with "
            "a privacy budget of its own."
        )
    parts = provenance.get("epsilon", {})
    if parts.get("prior", 0) > 0:
        remarks.append(
            f"The mechanism was designed with a private histogram of the labels, which cost "
            f"another ε = {parts['prior']:.6g} nats: with the claimed ε of the released labels "
            f"the total is ε = {parts['total']:.6g}."
        )
    return remarks
