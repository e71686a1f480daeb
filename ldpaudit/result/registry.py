"""The public form of a result as an entry of a registry of differential privacy deployments."""

import json
import math
from typing import Any, Final

from ldpaudit.result.audit_result import AuditResult
from ldpaudit.result.public import PublicResult, public

_OPEN: Final = "to be completed"


def registry_entry(result: AuditResult | PublicResult) -> str:
    """Return a draft of an entry of OpenDP's deployments registry (tier 2), as YAML.

    It holds nothing that the public profile does not hold. What an audit cannot know, such as who
    releases the data and what for, says "to be completed".

    Parameters
    ----------
    result : AuditResult or PublicResult

    Raises
    ------
    ldpaudit.errors.InputError
        If the result was stored by a version that kept nothing for the public profile.

    References
    ----------
    The fields of https://github.com/opendp/deployments-registry-data; Nanayakkara, Ghazi & Vadhan
    (2025), Practitioners' perspectives on a differential privacy deployment registry.
    """
    shared = result if isinstance(result, PublicResult) else public(result)
    part, mechanism = shared.released, shared.released.mechanism
    labels = part.release.label or "the label"
    audit = (
        f"Audited with ldpaudit {shared.ldpaudit_version}"
        f"{f' on {shared.date}' if shared.date else ''}, "
        f"{'with' if shared.truth else 'without'} true labels: {shared.decision}. {shared.sentence}"
    )
    if part.excess is not None:
        audit += f" An excess of ε by {part.excess:g} would have been found in 9 of 10 cases."
    deployment: dict[str, Any] = {
        "name": part.release.name or _OPEN,
        "data_curator": _OPEN,
        "description": f"A dataset of {part.release.rows:,} rows with a privatized label.",
        "intended_use": _OPEN,
        "data_product_type": "Microdata",
        "data_product_region": _OPEN,
        "data_product_sector": _OPEN,
        "publication_date": shared.date or _OPEN,
        "additional_information": audit,
        "dp_flavor": {
            "name": "Pure DP",
            "data_domain": f"Rows with features and a label ({labels}).",
            "unprotected_quantities": "The features, as far as the mechanism keeps them; the "
            "number of rows; the mechanism's parameters.",
        },
        "privacy_loss": {
            "privacy_unit": "Row-level",
            "privacy_unit_description": "The label of one row: label differential privacy. If a "
            "person has several rows, their ε adds up.",
            "privacy_parameters": {"epsilon": _finite(mechanism.epsilon)},
            "privacy_parameters_description": f"{mechanism.name}, as declared.",
        },
        "model": {
            "model_name": "Local",
            "model_name_description": "Each label is randomized on its own.",
            "is_many_release": bool(part.parts),
            "is_interactive": False,
            "is_dynamic": False,
        },
    }
    entry = {"status": "Draft", "registry_authors": [_OPEN], "tier": 2, "deployment": deployment}
    return "\n".join(_lines(entry)) + "\n"


def _finite(epsilon: float | None) -> float | str:
    if epsilon is None:
        return _OPEN
    return float(epsilon) if math.isfinite(epsilon) else "infinite"


def _lines(values: dict[str, Any], depth: int = 0) -> list[str]:
    """Return YAML: every text is quoted as in JSON, which is YAML, too."""
    found, space = [], "  " * depth
    for key, value in values.items():
        if isinstance(value, dict):
            found += [f"{space}{key}:", *_lines(value, depth + 1)]
        else:
            found.append(f"{space}{key}: {json.dumps(value, ensure_ascii=False)}")
    return found
