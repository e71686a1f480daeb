"""The declaration: what a file states about the mechanisms that made its private columns.

In: JSON under the key ``ldpaudit`` of the Parquet schema metadata, or beside a file. Out: a
:class:`~ldpaudit.release.ColumnsDeclaration`, of one private column as of several; and back.
"""

from ldpaudit.datasets.declaration.agreement import agreed, agreed_vectors, same_claim, same_claims
from ldpaudit.datasets.declaration.parsing import parse_declaration
from ldpaudit.datasets.declaration.writing import declare, declared_content

__all__ = [
    "agreed",
    "agreed_vectors",
    "declare",
    "declared_content",
    "parse_declaration",
    "same_claim",
    "same_claims",
]
