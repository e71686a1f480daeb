"""What the release declares besides its mechanism: the origin of draws, classes and prior."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ldpaudit.commands.privatize.features.generated_rows import FittedGenerator
from ldpaudit.commands.privatize.features.synthetic_sample import sample_rows
from ldpaudit.commands.privatize.private_columns import PrivateColumn, PrivateColumns
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.datasets.declaration import declared_content
from ldpaudit.datasets.formats.tabular import DECLARATION_KEY


def provenance(
    request: PrivatizeRequest, columns: PrivateColumns, fitted: FittedGenerator | None = None
) -> dict[str, Any]:
    """Return the declaration's ``provenance``: nothing in it depends on a single row.

    ``fitted`` is None where no generator made rows. With several columns the origin of classes and
    priors is stated by column.
    """
    entries: dict[str, Any] = {
        "randomness": "experimental generator" if request.experimental else "operating system",
        "classes": _stated({one.name: _classes(one) for one in columns}, len(columns)),
    }
    if request.remember is not None:
        entries["answers"] = "remembered"
    priors = {one.name: one.prior.source for one in columns if one.prior is not None}
    if priors:
        labels, spent = columns.labels_epsilon, columns.spent
        parts = {"prior": spent, "labels": labels, "total": spent + labels}
        entries |= {"prior": _stated(priors, len(columns)), "epsilon": parts}
    if fitted is not None:
        entries["generator"] = fitted.provenance()
    if request.synthetic_out is not None:
        survey = columns.first.survey
        entries["synthetic_sample"] = {
            "rows": sample_rows(request.synthetic_rows, survey.rows, survey.domain.classes),
            "draws": "independent of the release",
        }
    return entries


def _classes(column: PrivateColumn) -> str:
    return "data" if column.survey.from_data else "declared"


def _stated(of_columns: Mapping[str, str], columns: int) -> Any:
    """Return what holds for each column; of the only one without its name."""
    return of_columns if columns > 1 else next(iter(of_columns.values()))


def released_schema(
    fields: list[pa.Field], columns: PrivateColumns, entries: dict[str, Any]
) -> pa.Schema:
    """Return the release's schema, with the declaration as its only metadata."""
    declared = declared_content(replace(columns.declaration(), provenance=entries))
    return pa.schema(fields, metadata={DECLARATION_KEY: declared})
