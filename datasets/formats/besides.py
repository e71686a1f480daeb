"""What a file holds besides its table and its declaration: metadata that no audit looks at.

In: the schema of a file. Out: how many bytes say neither what the columns are nor what is declared.
Programs keep attributes of a table there, such as which rows belong to which group.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from ldpaudit.datasets.formats.tables import DECLARATION_KEY

# Such as which program wrote the file.
_MOST: Final = 100
# What describes columns, with its size: for the file, and for each column.
_OF_COLUMNS: Final = (500, 200)
_DESCRIPTIONS: Final = frozenset(
    {
        b"ARROW:schema",
        b"pandas",
        b"org.apache.spark.sql.parquet.row.metadata",
        b"parquet.avro.schema",
        b"r",
    }
)
_PANDAS, _PANDAS_ATTRIBUTES = b"pandas", b"PANDAS_ATTRS"
_FIELD_NUMBER: Final = b"PARQUET:field_id"


def bytes_besides(schema: pa.Schema) -> int:
    """Return how many bytes of metadata describe no column and declare nothing; 0 for a few."""
    width = len(schema.names)
    found = sum(_besides(key, text, width) for key, text in (schema.metadata or {}).items())
    for field in schema:
        of_field = field.metadata or {}
        found += sum(len(text) for key, text in of_field.items() if key != _FIELD_NUMBER)
    return found if found > _MOST else 0


def provenance_besides(provenance: Mapping[str, Any], columns: int) -> int:
    """Return how many bytes of a declared provenance are more than it takes to say how it was made.

    ``columns``: how many private columns there are.
    """
    return _longer_than_usual(json.dumps(dict(provenance)).encode(), columns)


def _besides(key: bytes, text: bytes, width: int) -> int:
    if key == DECLARATION_KEY:
        return 0
    content = _parsed(text) if key in (_PANDAS, _PANDAS_ATTRIBUTES) else {}
    attributes = content if key == _PANDAS_ATTRIBUTES else content.get("attributes")
    own = attributes
    if isinstance(attributes, dict):  # A frame keeps its declaration there, too.
        own = {name: one for name, one in attributes.items() if name != DECLARATION_KEY.decode()}
    if own or key == _PANDAS_ATTRIBUTES:
        return len(json.dumps(own)) if own else 0
    if key in _DESCRIPTIONS:
        return _longer_than_usual(text, width)
    return len(key) + len(text)


def _longer_than_usual(text: bytes, columns: int) -> int:
    file, column = _OF_COLUMNS
    return len(text) if len(text) > file + column * columns else 0


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
