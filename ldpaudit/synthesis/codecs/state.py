"""Codecs as tensors and plain values, so that a file of them can hold nothing that runs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from ldpaudit.synthesis.codecs.categories import CategoryColumn
from ldpaudit.synthesis.codecs.image import ImageCodec
from ldpaudit.synthesis.codecs.numbers import NumberColumn
from ldpaudit.synthesis.codecs.table import Column, TableCodec


def codec_state(codec: TableCodec | ImageCodec) -> dict[str, Any]:
    """Return a codec as a dictionary of tensors, numbers and lists."""
    schema = _bytes(codec.schema.serialize())
    if isinstance(codec, ImageCodec):
        return {
            "schema": schema,
            "side": codec.side,
            "low": codec.low,
            "high": codec.high,
            "seen": torch.from_numpy(codec.seen),
        }
    columns = [_column_state(column) for column in codec.columns]
    missing = [list(kinds) for kinds in codec.missing]
    return {"schema": schema, "columns": columns, "missing": missing}


def codec_from_state(state: Mapping[str, Any]) -> TableCodec | ImageCodec:
    """Rebuild a codec."""
    schema = pa.ipc.read_schema(pa.py_buffer(state["schema"].numpy().tobytes()))
    if "side" in state:
        seen = state["seen"].numpy()
        return ImageCodec(schema, int(state["side"]), state["low"], state["high"], seen)
    columns = tuple(
        _column(part, field.type) for part, field in zip(state["columns"], schema, strict=True)
    )
    missing = tuple(tuple(int(kind) for kind in kinds) for kinds in state["missing"])
    return TableCodec(schema, columns, missing)


def _column_state(column: Column) -> dict[str, Any]:
    if isinstance(column, NumberColumn):
        return {
            "quantiles": torch.from_numpy(column.quantiles),
            "seen": torch.from_numpy(column.seen),
            "offset": column.offset,
            "span": column.span,
        }
    batch = pa.record_batch([column.levels], names=["levels"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return {"levels": _bytes(sink.getvalue()), "shares": torch.from_numpy(column.shares)}


def _column(state: Mapping[str, Any], kind: pa.DataType) -> Column:
    if "quantiles" in state:
        quantiles, seen = state["quantiles"].numpy(), state["seen"].numpy()
        return NumberColumn(kind, quantiles, seen, int(state["offset"]), int(state["span"]))
    with pa.ipc.open_stream(pa.py_buffer(state["levels"].numpy().tobytes())) as reader:
        levels = reader.read_next_batch().column(0)
    levels.validate(full=True)
    return CategoryColumn(kind, levels, state["shares"].numpy())


def _bytes(buffer: pa.Buffer) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(buffer, dtype=np.uint8).copy())
