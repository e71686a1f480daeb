"""JSON schemas of stored results, every field described by the words of its docstring."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from ldpaudit.work.documents import as_json

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_SECTION: Final = re.compile(r"\n\n(?:Attributes|Parameters)\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)", re.S)
_FIELD: Final = re.compile(r"^(\w[\w, ]*?)(?: : ([^\n]*))?\n?((?:\n?    [^\n]*)*)$", re.M)


def json_schema(kind: Any, title: str, name: str) -> str:
    """Return the JSON schema of a stored result as JSON text.

    ``kind``: a model, or a TypedDict; ``title``, ``name``: of what it is the schema, for people
    and as the end of its URN.
    """
    schema = TypeAdapter(kind).json_schema(mode="serialization", schema_generator=_Described)
    if "$ref" in schema:  # A kind that holds itself is stated with its parts.
        schema = schema["$defs"][kind.__name__] | {"$defs": schema["$defs"]}
    head = {"$schema": _DIALECT, "$id": f"urn:ldpaudit:{name}", "title": title}
    return as_json(schema | head)


class _Described(GenerateJsonSchema):
    """Takes the descriptions of fields from docstrings."""

    def model_schema(self, schema: Any) -> dict[str, Any]:
        return _described(super().model_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
        return _described(super().typed_dict_schema(schema), schema["cls"])


def _described(schema: dict[str, Any], cls: type) -> dict[str, Any]:
    fields = getattr(cls, "model_fields", {})
    texts = {fields[n].alias or n if n in fields else n: t for n, t in field_texts(cls).items()}
    for name, field in schema["properties"].items():
        if name in texts:
            field.setdefault("description", texts[name])
        field.pop("title", None)
    return schema | {"description": _plain(inspect.getdoc(cls) or "").partition("\n\n")[0]}


@cache
def field_texts(cls: type) -> dict[str, str]:
    """Return what the docstrings of a class and of its bases say of each field."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("ldpaudit."):
            texts |= dict(_listed(base.__dict__.get("__doc__") or "")) | dict(_below(base))
    return texts


def _listed(docstring: str) -> Iterator[tuple[str, str]]:
    """Yield the fields that a section of a class's docstring lists."""
    for section in _SECTION.findall(inspect.cleandoc(docstring)):
        for names, kind, text in _FIELD.findall(section):
            words = " ".join(text.split()) or (f"A {kind}." if kind else "")
            for name in names.split(", "):
                if words:
                    yield name, _plain(words)


def _below(cls: type) -> Iterator[tuple[str, str]]:
    """Yield the fields that have a docstring of their own below them."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(words))),
            ):
                yield name, _plain(" ".join(words.split()))


def _plain(text: str) -> str:
    """Return words as they are said of JSON, without the marks of docstrings."""
    text = re.sub(r":\w+:`~?([^`]*)`", r"\1", text).replace("``", "")
    return re.sub(r"\bNone\b", "null", text)
