"""What the release declares besides its mechanism: the origin of draws, classes and prior."""

from typing import Any

import pyarrow as pa

from ldpaudit.commands.privatize.features.generated_rows import FittedGenerator
from ldpaudit.commands.privatize.features.synthetic_sample import sample_rows
from ldpaudit.commands.privatize.labels.priors import Prior
from ldpaudit.commands.privatize.labels.survey import Survey
from ldpaudit.commands.privatize.request import ColumnRequest
from ldpaudit.datasets.declaration import declared_metadata
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.release import Declaration


def provenance(
    request: ColumnRequest,
    mechanism: Mechanism,
    survey: Survey,
    prior: Prior | None,
    fitted: FittedGenerator | None = None,
) -> dict[str, Any]:
    """Return the declaration's ``provenance``: nothing in it depends on a single row.

    ``prior`` is None where no design needed one, ``fitted`` where no generator made rows.
    """
    entries: dict[str, Any] = {
        "randomness": "experimental generator" if request.experimental else "operating system",
        "classes": "data" if survey.from_data else "declared",
    }
    if prior is not None:
        labels = mechanism.epsilon or 0.0
        parts = {"prior": prior.epsilon, "labels": labels, "total": prior.epsilon + labels}
        entries |= {"prior": prior.source, "epsilon": parts}
    if fitted is not None:
        entries["generator"] = fitted.provenance()
    if request.synthetic_out is not None:
        entries["synthetic_sample"] = {
            "rows": sample_rows(request.synthetic_rows, survey.rows, survey.domain.classes),
            "draws": "independent of the release",
        }
    return entries


def released_schema(
    fields: list[pa.Field], label: str, mechanism: Mechanism, entries: dict[str, Any]
) -> pa.Schema:
    """Return the release's schema, with the declaration as its only metadata."""
    claim = Declaration(mechanism.name, dict(mechanism.declaration()), "api")
    return pa.schema(fields, metadata=declared_metadata(claim, label, entries))
